package plimsoll.stt;

import java.net.URI;
import java.net.URISyntaxException;
import java.time.Duration;
import java.util.Locale;
import java.util.Optional;
import java.util.function.Function;

/** The configuration, from environment variables and checked before anything starts. */
record Config(
        int port,
        int workerThreads,
        URI inferenceUrl,
        int inferenceConnections,
        Duration inferenceTimeout,
        Duration flushInterval,
        Duration flushPhaseJitter,
        long cpuPasses,
        int maxSessions,
        int maxBufferFrames,
        OverflowPolicy overflowPolicy,
        int maxInflightJobs,
        int outboxMessages,
        Duration startTimeout,
        Duration drainTimeout,
        String authToken) {
    /** Ten days; no duration here is sensibly longer, and sums of such durations stay far from overflow. */
    private static final long MILLIS_MAX = Duration.ofDays(10).toMillis();

    private static final long UNSIGNED_32_MAX = 0xFFFF_FFFFL;

    /** Reads variables through {@code lookup}, which gives null for one that is not set. */
    static Config read(Function<String, String> lookup) throws ConfigException {
        Variables variables = new Variables(lookup);
        int cores = Runtime.getRuntime().availableProcessors();
        int workerThreads = variables.integer("WORKER_THREADS", cores, 1, 1024);
        return new Config(
                variables.integer("PORT", 3000, 1, 65_535),
                workerThreads,
                variables.httpUrl("INFERENCE_URL", "http://127.0.0.1:9000"),
                // The most at once, or 0: as many as requests. Counted for each worker, and all workers share them.
                variables.integer("INFERENCE_HTTP_CLIENTS", 0, 0, 1024) * workerThreads,
                variables.millis("INFERENCE_TIMEOUT_MS", 5000, 1),
                variables.millis("FLUSH_INTERVAL_MS", 1000, 1),
                variables.millis("FLUSH_PHASE_JITTER_MS", 1000, 0),
                variables.number("CPU_PASSES", 4, 1, UNSIGNED_32_MAX),
                variables.integer("MAX_SESSIONS", 0, 0, Integer.MAX_VALUE),
                variables.integer("MAX_BUFFER_FRAMES", 500, 1, 1_000_000),
                variables.overflowPolicy("OVERFLOW_POLICY", "drop_oldest"),
                variables.integer("MAX_INFLIGHT_JOBS", 0, 0, Integer.MAX_VALUE),
                variables.integer("OUTBOX_MESSAGES", 4, 1, 1_000_000),
                variables.millis("START_TIMEOUT_MS", 10_000, 1),
                variables.millis("DRAIN_TIMEOUT_MS", 5000, 0),
                variables.text("AUTH_TOKEN", ""));
    }

    /** Variables by name, each read by its type. */
    private record Variables(Function<String, String> lookup) {
        String text(String name, String otherwise) {
            return Optional.ofNullable(lookup.apply(name)).orElse(otherwise);
        }

        long number(String name, long otherwise, long min, long max) throws ConfigException {
            String text = text(name, Long.toString(otherwise));
            // Java would also take a sign, and digits of other scripts. Fifteen digits always fit.
            long value = text.matches("[0-9]{1,15}") ? Long.parseLong(text) : -1;
            if (value < min || value > max) {
                throw new ConfigException(name, text, "give a whole number from " + min + " to " + max);
            }
            return value;
        }

        int integer(String name, int otherwise, int min, int max) throws ConfigException {
            return (int) number(name, otherwise, min, max);
        }

        Duration millis(String name, long otherwise, long min) throws ConfigException {
            return Duration.ofMillis(number(name, otherwise, min, MILLIS_MAX));
        }

        URI httpUrl(String name, String otherwise) throws ConfigException {
            String text = text(name, otherwise);
            try {
                URI url = new URI(text);
                boolean hasPort = url.getPort() == -1 || (url.getPort() > 0 && url.getPort() <= 65_535);
                if ("http".equals(url.getScheme())
                        && url.getHost() != null
                        && hasPort
                        && url.getQuery() == null
                        && url.getFragment() == null) {
                    return url;
                }
            } catch (URISyntaxException _) {
                // Reported below, like every other text that is no such URL.
            }
            throw new ConfigException(name, text, "give a URL of the form http://host:port");
        }

        OverflowPolicy overflowPolicy(String name, String otherwise) throws ConfigException {
            String text = text(name, otherwise);
            for (OverflowPolicy policy : OverflowPolicy.values()) {
                if (policy.name().toLowerCase(Locale.ROOT).equals(text)) {
                    return policy;
                }
            }
            throw new ConfigException(name, text, "give drop_oldest, drop_newest or close");
        }
    }
}
