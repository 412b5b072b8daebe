package plimsoll.http;

import java.util.function.UnaryOperator;

/** What the contract's environment variables say. */
public record Config(int port, int workers, long drainTimeoutMs, long maxBodyBytes) {
    private static final long MAX_WORKERS = 1024;

    /**
     * A JVM that ends waits 300 ms for threads that are in a system call, as those that wait for clients are. On a
     * busy machine it takes longer.
     */
    private static final long EXIT_MS = 600;

    /** Some variable has a value that it can't have. The message is one line that names it. */
    public static final class BadValue extends Exception {
        private static final long serialVersionUID = 1;

        BadValue(String message) {
            super(message);
        }
    }

    /** Reads the variables that {@code environment} knows; it returns null for others. */
    public static Config read(UnaryOperator<String> environment) throws BadValue {
        return new Config(
                (int) number(environment, "PORT", 3000, 0, 65_535),
                (int) number(environment, "WORKER_THREADS", 1, 1, MAX_WORKERS),
                number(environment, "DRAIN_TIMEOUT_MS", 5000, 0, Integer.MAX_VALUE),
                number(environment, "MAX_BODY_BYTES", 1 << 20, 0, Integer.MAX_VALUE));
    }

    /** The configuration of this process. If a value is bad, says so and ends the process with code 2. */
    public static Config readOrExit() {
        try {
            return read(System::getenv);
        } catch (BadValue e) {
            System.err.println(e.getMessage());
            System.exit(2);
            throw new AssertionError("unreachable", e);
        }
    }

    /** How long to wait for requests in flight, so that the process ends within {@code DRAIN_TIMEOUT_MS}. */
    public long drainWaitMs() {
        return Math.max(0, drainTimeoutMs - EXIT_MS);
    }

    private static long number(UnaryOperator<String> environment, String name, long fallback, long min, long max)
            throws BadValue {
        String text = environment.apply(name);
        if (text == null) {
            return fallback;
        }
        long value = Decimal.parse(text, max);
        if (value < min) {
            throw new BadValue(name + "=" + text.strip().replaceAll("\\s+", " ") + " is not a whole number from " + min
                    + " to " + max + "; set one, or unset it for " + fallback);
        }
        return value;
    }
}
