package plimsoll.stt.message;

import java.io.IOException;
import plimsoll.stt.session.Session;
import plimsoll.stt.session.Span;

/** A range of frames that will have no transcript, and why. The session goes on. */
public record GatewayError(
        Failure failure,
        Span span,
        long nowNanos,
        long flushLatenessNanos,
        long inferenceElapsedNanos,
        int inflightBatches,
        int bufferedFrames)
        implements GatewayMessage {
    /** For {@code inferenceElapsedNanos} where no request was made. */
    public static final long NO_INFERENCE = -1;

    @Override
    public byte[] toJson() {
        return Json.object(this::write);
    }

    private void write(Json.Writer json) throws IOException {
        FailureKind kind = failure.kind();
        json.string("type", "error");
        json.string("stage", kind.stage());
        json.string("kind", kind.label());
        json.string("message", failure.message());
        json.number("oldest_frame_seq", span.oldestSeq());
        json.number("newest_frame_seq", span.newestSeq());
        json.number("frames", span.frames());
        json.number("audio_bytes", span.frames() * Session.FRAME_BYTES);
        json.number("oldest_age_ms", Json.milliseconds(nowNanos - span.oldestAtNanos()));
        json.number("newest_age_ms", Json.milliseconds(nowNanos - span.newestAtNanos()));
        json.number("flush_lateness_ms", Json.milliseconds(flushLatenessNanos));
        if (inferenceElapsedNanos == NO_INFERENCE) {
            json.none("inference_elapsed_ms");
        } else {
            json.number("inference_elapsed_ms", Json.milliseconds(inferenceElapsedNanos));
        }
        json.number("inflight_gateway_batches", inflightBatches);
        json.number("gateway_buffer_frames", bufferedFrames);
        if (failure.status().isPresent()) {
            json.number("inference_status", failure.status().getAsInt());
        } else {
            json.none("inference_status");
        }
        json.bool("retryable", kind.retryable());
    }
}
