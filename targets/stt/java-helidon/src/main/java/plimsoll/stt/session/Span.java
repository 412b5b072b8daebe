package plimsoll.stt.session;

/** A contiguous range of frames: the numbers of its ends, and when they were received. */
public record Span(long oldestSeq, long newestSeq, long oldestAtNanos, long newestAtNanos) {
    public Span {
        if (newestSeq < oldestSeq) {
            throw new IllegalArgumentException("a span has at least one frame");
        }
    }

    public long frames() {
        return newestSeq - oldestSeq + 1;
    }

    /** This span, longer by the frame that follows it. */
    Span extendedTo(long seq, long atNanos) {
        if (seq != newestSeq + 1) {
            throw new IllegalArgumentException("frame " + seq + " does not follow frame " + newestSeq);
        }
        return new Span(oldestSeq, seq, oldestAtNanos, atNanos);
    }
}
