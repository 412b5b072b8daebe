package plimsoll.http;

import java.time.Duration;
import java.util.function.UnaryOperator;

/** The configuration, from environment variables and checked before anything starts. */
public record Config(int port, int workers, Duration drainTimeout, int maxBodyBytes) {
    private static final int EXIT_BAD_CONFIG = 2;

    /** Reads variables through {@code lookup}, which gives null for one that is not set. */
    public static Config read(UnaryOperator<String> lookup) throws ConfigException {
        return new Config(
                number(lookup, "PORT", 3000, 1, 65_535),
                number(lookup, "WORKER_THREADS", 1, 1, 1024),
                Duration.ofMillis(number(lookup, "DRAIN_TIMEOUT_MS", 5000, 0, Integer.MAX_VALUE)),
                number(lookup, "MAX_BODY_BYTES", 1_048_576, 0, Integer.MAX_VALUE));
    }

    /** Reads this process's environment. Ends the process with a line on stderr if a variable is wrong. */
    public static Config fromEnvironment() {
        try {
            return read(System::getenv);
        } catch (ConfigException e) {
            System.err.println(e.getMessage());
            System.exit(EXIT_BAD_CONFIG);
            throw new AssertionError("exit returned", e);
        }
    }

    private static int number(UnaryOperator<String> lookup, String name, int otherwise, int min, int max)
            throws ConfigException {
        String text = lookup.apply(name);
        if (text == null) {
            return otherwise;
        }
        long value = Digits.parse(text, max);
        if (value < min) {
            throw new ConfigException(
                    name + "=" + text + ": not a whole number from " + min + " to " + max + "; give one, or unset it");
        }
        return (int) value;
    }

    /** A variable has a bad value. The message is one line that names it. */
    public static final class ConfigException extends Exception {
        private static final long serialVersionUID = 1;

        ConfigException(String message) {
            // A value may hold line breaks; the message is one line all the same.
            super(message.replaceAll("\\p{Cntrl}", "?"));
        }
    }
}
