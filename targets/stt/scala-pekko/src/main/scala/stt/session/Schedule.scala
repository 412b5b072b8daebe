package stt.session

/** The absolute schedule of flushes: `start + jitter + k * interval`, k = 1, 2, … Ticks are computed from each other,
  * never from "now", so a late one moves no other.
  */
final class Schedule(originNanos: Long, intervalNanos: Long):
  require(intervalNanos > 0, "the configuration asks for at least 1 ms")
  private var next = originNanos + intervalNanos

  def nextNanos: Long = next

  /** The scheduled time of the tick that is due at `nowNanos`, if any. Ticks that are past as well are skipped: one
    * flush takes everything that they could have taken.
    */
  def due(nowNanos: Long): Option[Long] =
    if nowNanos - next < 0 then None
    else
      val scheduled = next
      next += ((nowNanos - next) / intervalNanos + 1) * intervalNanos
      Some(scheduled)
