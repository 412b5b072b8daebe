package plimsoll.stt;

import java.util.concurrent.TimeUnit;

/** The gateway's messages to the client, as JSON. */
final class Messages {
    private Messages() {}

    /** What is known when an error is written. {@code elapsedNanos} is null where no request was made. */
    record Context(long nowNanos, long latenessNanos, Long elapsedNanos, int inflight, int bufferFrames) {}

    /** The transcript of a batch. */
    static String partial(Span span, Answer.Inference inference, long cpuPasses, long latenessNanos) {
        return Json.object()
                .put("type", "partial")
                .put("oldest_frame_seq", span.oldestSeq())
                .put("newest_frame_seq", span.newestSeq())
                .put("frames", span.frames())
                .put("rms", inference.rms())
                .put("zero_crossings", inference.zeroCrossings())
                .put("checksum", inference.checksum())
                .put("samples", inference.samples())
                .put("transcript", inference.transcript())
                .put("audio_bytes", inference.audioBytes())
                .put("cpu_passes", cpuPasses)
                .put("flush_lateness_ms", millis(latenessNanos))
                .toString();
    }

    /** A range of frames that will have no transcript, and why. */
    static String error(Span span, Answer.Failure failure, Context context) {
        Long elapsedNanos = context.elapsedNanos();
        return Json.object()
                .put("type", "error")
                .put("stage", failure.kind().stage)
                .put("kind", failure.kind().label)
                .put("message", failure.message())
                .put("oldest_frame_seq", span.oldestSeq())
                .put("newest_frame_seq", span.newestSeq())
                .put("frames", span.frames())
                .put("audio_bytes", span.frames() * Session.FRAME_BYTES)
                .put("oldest_age_ms", millis(context.nowNanos() - span.oldestAtNanos()))
                .put("newest_age_ms", millis(context.nowNanos() - span.newestAtNanos()))
                .put("flush_lateness_ms", millis(context.latenessNanos()))
                .put("inference_elapsed_ms", elapsedNanos == null ? null : (Double) millis(elapsedNanos))
                .put("inflight_gateway_batches", context.inflight())
                .put("gateway_buffer_frames", context.bufferFrames())
                .put("inference_status", failure.status())
                .put("retryable", failure.kind().retryable)
                .toString();
    }

    private static double millis(long nanos) {
        return nanos / (double) TimeUnit.MILLISECONDS.toNanos(1);
    }
}
