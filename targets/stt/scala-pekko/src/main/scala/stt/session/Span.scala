package stt.session

/** A contiguous range of frames, and when the gateway received its ends (nanoseconds of the monotonic clock). */
final case class Span(oldestSeq: Long, newestSeq: Long, oldestAtNanos: Long, newestAtNanos: Long):
  def frames: Long = newestSeq - oldestSeq + 1

  /** The range with the frame that follows it. */
  def extended(seq: Long, atNanos: Long): Span =
    assert(seq == newestSeq + 1, "a range has no gaps")
    copy(newestSeq = seq, newestAtNanos = atNanos)
