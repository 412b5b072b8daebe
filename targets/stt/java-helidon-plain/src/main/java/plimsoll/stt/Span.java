package plimsoll.stt;

/** A contiguous range of frames: the numbers of its ends, and when they were received. */
record Span(long oldestSeq, long newestSeq, long oldestAtNanos, long newestAtNanos) {
    long frames() {
        return newestSeq - oldestSeq + 1;
    }

    /** This span, longer by the frame that follows it. */
    Span extendedTo(long seq, long atNanos) {
        return new Span(oldestSeq, seq, oldestAtNanos, atNanos);
    }
}
