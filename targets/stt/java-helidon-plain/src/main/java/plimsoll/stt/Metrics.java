package plimsoll.stt;

import java.util.Arrays;
import java.util.EnumMap;
import java.util.Map;
import java.util.concurrent.atomic.DoubleAdder;
import java.util.concurrent.atomic.LongAdder;

/** The contract's metrics, in Prometheus' text format. */
final class Metrics {
    private static final double NANOS_PER_SECOND = 1e9;
    private static final double[] FRAMES = {1, 2, 5, 10, 20, 50, 75, 100, 150, 200, 300, 500};
    private static final double[] SECONDS = {
        0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 1, 2.5, 5
    };

    final LongAdder sessions = new LongAdder();
    final LongAdder sessionsRejected = new LongAdder();
    final LongAdder frames = new LongAdder();
    final LongAdder framesDropped = new LongAdder();
    final LongAdder partials = new LongAdder();
    private final Map<FailureKind, LongAdder> errors = new EnumMap<>(FailureKind.class);
    private final Map<Deferral, LongAdder> deferred = new EnumMap<>(Deferral.class);
    private final Histogram bufferFrames = new Histogram("stt_buffer_frames", FRAMES);
    private final Histogram flushLateness = new Histogram("stt_flush_lateness_seconds", SECONDS);
    private final Histogram inference = new Histogram("stt_inference_seconds", SECONDS);

    Metrics() {
        // Every series is there from the start, so that a rate can be taken of the first event.
        for (FailureKind kind : FailureKind.values()) {
            errors.put(kind, new LongAdder());
        }
        for (Deferral reason : Deferral.values()) {
            deferred.put(reason, new LongAdder());
        }
    }

    void error(FailureKind kind) {
        errors.get(kind).increment();
    }

    void deferred(Deferral reason) {
        deferred.get(reason).increment();
    }

    void flushed(Session.Batch batch) {
        bufferFrames.observe((double) batch.span().frames());
        flushLateness.observe(batch.latenessNanos() / NANOS_PER_SECOND);
    }

    void answered(long elapsedNanos) {
        inference.observe(elapsedNanos / NANOS_PER_SECOND);
    }

    String render(int sessionsOpen, int jobsInflight) {
        StringBuilder text = new StringBuilder();
        type(text, "stt_sessions", "gauge")
                .append("stt_sessions ")
                .append(sessionsOpen)
                .append('\n');
        counter(text, "stt_sessions_total", sessions);
        counter(text, "stt_sessions_rejected_total", sessionsRejected);
        counter(text, "stt_frames_total", frames);
        counter(text, "stt_frames_dropped_total", framesDropped);
        counter(text, "stt_partials_total", partials);
        type(text, "stt_errors_total", "counter");
        errors.forEach((kind, count) -> text.append(
                "stt_errors_total{stage=\"%s\",kind=\"%s\"} %d\n".formatted(kind.stage, kind.label, count.sum())));
        type(text, "stt_jobs_inflight", "gauge")
                .append("stt_jobs_inflight ")
                .append(jobsInflight)
                .append('\n');
        type(text, "stt_ticks_deferred_total", "counter");
        deferred.forEach((reason, count) ->
                text.append("stt_ticks_deferred_total{reason=\"%s\"} %d\n".formatted(reason.label(), count.sum())));
        bufferFrames.render(text);
        flushLateness.render(text);
        inference.render(text);
        return text.toString();
    }

    private static StringBuilder type(StringBuilder text, String name, String type) {
        return text.append("# TYPE ").append(name).append(' ').append(type).append('\n');
    }

    private static void counter(StringBuilder text, String name, LongAdder count) {
        type(text, name, "counter").append(name).append(' ').append(count).append('\n');
    }

    private static final class Histogram {
        private final String name;
        private final double[] bounds;
        private final LongAdder[] buckets;
        private final DoubleAdder sum = new DoubleAdder();

        /** {@code bounds} are inclusive, and ascend. */
        Histogram(String name, double[] bounds) {
            this.name = name;
            this.bounds = bounds;
            this.buckets = new LongAdder[bounds.length + 1];
            Arrays.setAll(buckets, _ -> new LongAdder());
        }

        void observe(double value) {
            int at = Arrays.binarySearch(bounds, value);
            buckets[at >= 0 ? at : -at - 1].increment();
            sum.add(value);
        }

        void render(StringBuilder text) {
            type(text, name, "histogram");
            long count = 0;
            for (int i = 0; i < buckets.length; i++) {
                count += buckets[i].sum();
                String bound = i < bounds.length ? Double.toString(bounds[i]) : "+Inf";
                text.append("%s_bucket{le=\"%s\"} %d\n".formatted(name, bound, count));
            }
            text.append(name).append("_sum ").append(sum).append('\n');
            text.append(name).append("_count ").append(count).append('\n');
        }
    }
}
