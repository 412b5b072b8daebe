package plimsoll.stt.session;

/** The configuration that a session needs. */
public record Settings(
        long flushIntervalNanos,
        long startTimeoutNanos,
        long inferenceTimeoutNanos,
        int bufferFramesMax,
        OverflowPolicy overflowPolicy,
        int outboxMessagesMax,
        long cpuPasses) {}
