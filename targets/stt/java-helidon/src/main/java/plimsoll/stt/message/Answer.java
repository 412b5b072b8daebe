package plimsoll.stt.message;

/** How a request to inference ended. */
public sealed interface Answer permits Answer.Inference, Failure {
    /** What the inference server says about a batch: exactly these fields. Unsigned numbers over 2^63 are negative here. */
    record Inference(double rms, long zeroCrossings, long checksum, long samples, String transcript, long audioBytes)
            implements Answer {}
}
