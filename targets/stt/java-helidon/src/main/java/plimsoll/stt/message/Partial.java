package plimsoll.stt.message;

import java.io.IOException;
import plimsoll.stt.session.Span;

/** The transcript of a batch. */
public record Partial(Span span, Answer.Inference inference, long cpuPasses, long flushLatenessNanos)
        implements GatewayMessage {
    @Override
    public byte[] toJson() {
        return Json.object(this::write);
    }

    private void write(Json.Writer json) throws IOException {
        json.string("type", "partial");
        json.number("oldest_frame_seq", span.oldestSeq());
        json.number("newest_frame_seq", span.newestSeq());
        json.number("frames", span.frames());
        json.number("rms", inference.rms());
        json.unsigned("zero_crossings", inference.zeroCrossings());
        json.number("checksum", inference.checksum());
        json.unsigned("samples", inference.samples());
        json.string("transcript", inference.transcript());
        json.unsigned("audio_bytes", inference.audioBytes());
        json.number("cpu_passes", cpuPasses);
        json.number("flush_lateness_ms", Json.milliseconds(flushLatenessNanos));
    }
}
