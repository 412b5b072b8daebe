package plimsoll.stt;

import java.util.EnumMap;
import java.util.Map;
import java.util.concurrent.atomic.LongAdder;
import plimsoll.stt.message.FailureKind;
import plimsoll.stt.session.Deferral;
import plimsoll.stt.session.Flight;
import plimsoll.stt.session.Tally;

/**
 * Prometheus metrics. Sessions count for themselves and fold their counts in here about once per flush, so that no frame
 * touches a shared cache line; {@code stt_frames_total} therefore lags by up to one flush interval.
 */
public final class Metrics {
    private static final double MICROS_PER_SECOND = 1e6;
    private static final long NANOS_PER_MICRO = 1000;

    private final LongAdder sessions = new LongAdder();
    private final LongAdder sessionsRejected = new LongAdder();
    private final LongAdder frames = new LongAdder();
    private final LongAdder framesDropped = new LongAdder();
    private final LongAdder partials = new LongAdder();
    private final Map<FailureKind, LongAdder> errors = new EnumMap<>(FailureKind.class);
    private final Map<Deferral, LongAdder> deferred = new EnumMap<>(Deferral.class);
    private final Histogram bufferFrames =
            new Histogram("stt_buffer_frames", 1, 1, 5, 10, 25, 40, 45, 50, 55, 60, 75, 100, 150, 200, 300, 500);
    private final Histogram flushLateness = new Histogram(
            "stt_flush_lateness_seconds",
            MICROS_PER_SECOND,
            500,
            1_000,
            2_000,
            5_000,
            10_000,
            20_000,
            50_000,
            100_000,
            250_000,
            500_000,
            1_000_000);
    private final Histogram inference = new Histogram(
            "stt_inference_seconds",
            MICROS_PER_SECOND,
            10_000,
            25_000,
            50_000,
            75_000,
            100_000,
            125_000,
            150_000,
            200_000,
            300_000,
            500_000,
            750_000,
            1_000_000,
            2_500_000,
            5_000_000);

    public Metrics() {
        for (FailureKind kind : FailureKind.values()) {
            errors.put(kind, new LongAdder());
        }
        for (Deferral reason : Deferral.values()) {
            deferred.put(reason, new LongAdder());
        }
    }

    public void sessionOpened() {
        sessions.increment();
    }

    public void sessionRejected() {
        sessionsRejected.increment();
    }

    public void flushed(Flight flight) {
        bufferFrames.observe(flight.span().frames());
        flushLateness.observe(flight.flushLatenessNanos() / NANOS_PER_MICRO);
    }

    public void answered(long elapsedNanos) {
        inference.observe(elapsedNanos / NANOS_PER_MICRO);
    }

    /** Adds what a session counted, and lets it count anew. The caller holds the session's lock. */
    public void fold(Tally tally) {
        frames.add(tally.frames());
        if (tally.framesDropped() > 0) {
            framesDropped.add(tally.framesDropped());
        }
        partials.add(tally.partials());
        tally.errors().forEach((kind, count) -> errors.get(kind).add(count));
        tally.deferred().forEach((reason, count) -> deferred.get(reason).add(count));
        tally.clear();
    }

    /** The text format, version 0.0.4. */
    public String render(int sessionsOpen, int jobsInFlight) {
        StringBuilder text = new StringBuilder(6 * 1024);
        plain(text, "stt_sessions", "gauge", sessionsOpen);
        plain(text, "stt_sessions_total", "counter", sessions.sum());
        plain(text, "stt_sessions_rejected_total", "counter", sessionsRejected.sum());
        plain(text, "stt_frames_total", "counter", frames.sum());
        plain(text, "stt_frames_dropped_total", "counter", framesDropped.sum());
        plain(text, "stt_partials_total", "counter", partials.sum());
        text.append("# TYPE stt_errors_total counter\n");
        errors.forEach((kind, total) -> text.append("stt_errors_total{stage=\"")
                .append(kind.stage())
                .append("\",kind=\"")
                .append(kind.label())
                .append("\"} ")
                .append(total.sum())
                .append('\n'));
        plain(text, "stt_jobs_inflight", "gauge", jobsInFlight);
        text.append("# TYPE stt_ticks_deferred_total counter\n");
        deferred.forEach((reason, total) -> text.append("stt_ticks_deferred_total{reason=\"")
                .append(reason.label())
                .append("\"} ")
                .append(total.sum())
                .append('\n'));
        bufferFrames.render(text);
        flushLateness.render(text);
        inference.render(text);
        return text.toString();
    }

    private static void plain(StringBuilder text, String name, String type, long value) {
        text.append("# TYPE ").append(name).append(' ').append(type).append('\n');
        text.append(name).append(' ').append(value).append('\n');
    }
}
