package plimsoll.stt.session;

/** A batch that is out for inference: the one that a session can have. */
public record Flight(Span span, long sentAtNanos, long giveUpAtNanos, long flushLatenessNanos) {}
