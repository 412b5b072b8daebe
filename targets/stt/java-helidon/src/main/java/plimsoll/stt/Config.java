package plimsoll.stt;

import java.net.URI;
import java.net.URISyntaxException;
import java.time.Duration;
import java.util.Optional;
import java.util.function.Function;
import plimsoll.stt.session.OverflowPolicy;
import plimsoll.stt.session.Settings;

/** The configuration, from environment variables and checked before anything starts. */
public record Config(
        int port,
        int workerThreads,
        URI inferenceUrl,
        int inferenceConnections,
        long flushPhaseJitterNanos,
        int sessionsMax,
        int jobsMax,
        long drainTimeoutNanos,
        long readPaceNanos,
        String authToken,
        Settings session) {
    /** Ten days; no duration here is sensibly longer, and sums of such durations stay far from overflow. */
    private static final long MILLIS_MAX = Duration.ofDays(10).toMillis();

    /** A violation is answered within 500 ms: half of that for the wait, the rest for a busy machine. */
    private static final long READ_PACE_MS_MAX = 250;

    private static final long UNSIGNED_32_MAX = 0xFFFF_FFFFL;

    /** Reads variables through {@code lookup}, which gives null for one that is not set. */
    public static Config read(Function<String, String> lookup) throws ConfigException {
        Variables variables = new Variables(lookup);
        int workerThreads =
                variables.integer("WORKER_THREADS", Runtime.getRuntime().availableProcessors(), 1, 1024);
        return new Config(
                variables.integer("PORT", 3000, 1, 65_535),
                workerThreads,
                variables.httpUrl("INFERENCE_URL", "http://127.0.0.1:9000"),
                // The contract counts them for each worker. Here all workers share them.
                variables.integer("INFERENCE_HTTP_CLIENTS", 1, 1, 1024) * workerThreads,
                variables.millis("FLUSH_PHASE_JITTER_MS", 1000, 0),
                variables.integer("MAX_SESSIONS", 0, 0, Integer.MAX_VALUE),
                variables.integer("MAX_INFLIGHT_JOBS", 0, 0, Integer.MAX_VALUE),
                variables.millis("DRAIN_TIMEOUT_MS", 5000, 0),
                Duration.ofMillis(variables.number("READ_PACE_MS", 0, 0, READ_PACE_MS_MAX))
                        .toNanos(),
                variables.text("AUTH_TOKEN", ""),
                session(variables));
    }

    private static Settings session(Variables variables) throws ConfigException {
        return new Settings(
                variables.millis("FLUSH_INTERVAL_MS", 1000, 1),
                variables.millis("START_TIMEOUT_MS", 10_000, 1),
                variables.millis("INFERENCE_TIMEOUT_MS", 5000, 1),
                variables.integer("MAX_BUFFER_FRAMES", 500, 1, 1_000_000),
                variables.overflowPolicy(),
                variables.integer("OUTBOX_MESSAGES", 4, 1, 1_000_000),
                variables.number("CPU_PASSES", 4, 1, UNSIGNED_32_MAX));
    }

    /** Variables by name, each read by its type. */
    private record Variables(Function<String, String> lookup) {
        String text(String name, String otherwise) {
            return Optional.ofNullable(lookup.apply(name)).orElse(otherwise);
        }

        long number(String name, long otherwise, long min, long max) throws ConfigException {
            String text = text(name, Long.toString(otherwise));
            // Digits only: Java would also take a sign, and digits of other scripts.
            if (!text.isEmpty() && text.chars().allMatch(c -> c >= '0' && c <= '9')) {
                try {
                    long value = Long.parseLong(text);
                    if (value >= min && value <= max) {
                        return value;
                    }
                } catch (NumberFormatException _) {
                    // Too long, hence too large.
                }
            }
            throw new ConfigException(name, text, "give a whole number from " + min + " to " + max);
        }

        int integer(String name, int otherwise, int min, int max) throws ConfigException {
            return (int) number(name, otherwise, min, max);
        }

        /** A duration that is given in milliseconds, in nanoseconds. */
        long millis(String name, long otherwise, long min) throws ConfigException {
            return Duration.ofMillis(number(name, otherwise, min, MILLIS_MAX)).toNanos();
        }

        URI httpUrl(String name, String otherwise) throws ConfigException {
            String text = text(name, otherwise);
            try {
                URI url = new URI(text);
                if ("http".equalsIgnoreCase(url.getScheme())
                        && url.getHost() != null
                        && url.getPort() <= 65_535
                        && url.getPort() != 0
                        && url.getQuery() == null
                        && url.getFragment() == null) {
                    return url;
                }
            } catch (URISyntaxException _) {
                // Told below, like every other text that is no such URL.
            }
            throw new ConfigException(name, text, "give a URL of the form http://host:port");
        }

        OverflowPolicy overflowPolicy() throws ConfigException {
            String name = "OVERFLOW_POLICY";
            String text = text(name, "drop_oldest");
            return switch (text) {
                case "drop_oldest" -> OverflowPolicy.DROP_OLDEST;
                case "drop_newest" -> OverflowPolicy.DROP_NEWEST;
                case "close" -> OverflowPolicy.CLOSE;
                default -> throw new ConfigException(name, text, "give drop_oldest, drop_newest or close");
            };
        }
    }
}
