package stt.session

import org.apache.pekko.util.ByteString
import stt.websocket.Masking

/** What to do with a frame when the buffer is full. */
enum OverflowPolicy:
  case DropOldest, DropNewest, Close

/** What became of a frame. */
enum Pushed:
  /** It is in the buffer, and so are all that were. */
  case Kept

  /** A frame was dropped, this one or the oldest, and will be reported. */
  case Dropped

  /** The policy asks to close the session; the frame was not accepted. */
  case Refused

/** Numbers a session's frames and holds those that wait for the next flush.
  *
  * It is a ring over one array. Frames leave in the order of their numbers, in up to three contiguous ranges: dropped
  * before the buffer, buffered, dropped after it. `DropOldest` makes only the first kind of drop; what `DropNewest`
  * drops is behind the buffer, and before it once that has been taken.
  */
final class AudioBuffer(policy: OverflowPolicy, framesMax: Int, framesExpected: Int):
  import AudioBuffer.*

  private val framesInitial = math.max(1, math.min(framesExpected, framesMax))
  private var pcm = Array.emptyByteArray
  private var arrivals = Array.emptyLongArray
  private var head = 0
  private var count = 0
  private var nextSeq = 1L
  private var droppedBefore = Option.empty[Span]
  private var droppedAfter = Option.empty[Span]

  def frames: Int = count

  /** Whether a tick would find anything to send or to report. */
  def isWaiting: Boolean = count > 0 || droppedBefore.isDefined

  /** Takes in the frame at `offset` of `source`, unmasking it with `key` on the way: its only copy. */
  def push(nowNanos: Long, source: Array[Byte], offset: Int, key: Int): Pushed =
    if count < framesMax then
      append(nowNanos, source, offset, key)
      Pushed.Kept
    else
      policy match
        case OverflowPolicy.Close => Pushed.Refused
        case OverflowPolicy.DropNewest =>
          droppedAfter = extend(droppedAfter, nextSeq, nowNanos)
          nextSeq += 1
          Pushed.Dropped
        case OverflowPolicy.DropOldest =>
          droppedBefore = extend(droppedBefore, oldestSeq, arrivals(head))
          head = (head + 1) % arrivals.length
          count -= 1
          append(nowNanos, source, offset, key)
          Pushed.Dropped

  /** The dropped frames that precede the buffered ones. They must be reported before [[take]]. */
  def takeDropped(): Option[Span] =
    val dropped = droppedBefore
    droppedBefore = None
    dropped

  /** Takes the whole buffer. `spare` is an array that [[Batch.storage]] gave earlier and nobody uses any more. */
  def take(spare: Array[Byte]): Batch =
    assert(count > 0 && droppedBefore.isEmpty, "dropped frames are named before those that follow them")
    val newest = (head + count - 1) % arrivals.length
    val span = Span(oldestSeq, oldestSeq + count - 1, arrivals(head), arrivals(newest))
    val batch = Batch(span, contents, pcm)
    pcm = if spare.length == pcm.length then spare else Array.emptyByteArray
    if pcm.isEmpty then arrivals = Array.emptyLongArray
    head = 0
    count = 0
    droppedBefore = droppedAfter
    droppedAfter = None
    batch

  private def contents: ByteString =
    val first = math.min(count, arrivals.length - head)
    val start = ByteString.fromArrayUnsafe(pcm, head * FrameBytes, first * FrameBytes)
    if first == count then start else start ++ ByteString.fromArrayUnsafe(pcm, 0, (count - first) * FrameBytes)

  private def append(nowNanos: Long, source: Array[Byte], offset: Int, key: Int): Unit =
    if count == arrivals.length then grow()
    val place = (head + count) % arrivals.length
    Masking.copy(source, offset, pcm, place * FrameBytes, FrameBytes, key)
    arrivals(place) = nowNanos
    count += 1
    nextSeq += 1

  /** Only called when full; puts the oldest frame first. */
  private def grow(): Unit =
    val capacity = if count == 0 then framesInitial else math.min(2 * count, framesMax)
    val largerPcm = new Array[Byte](capacity * FrameBytes)
    val largerArrivals = new Array[Long](capacity)
    val first = count - head
    System.arraycopy(pcm, head * FrameBytes, largerPcm, 0, first * FrameBytes)
    System.arraycopy(pcm, 0, largerPcm, first * FrameBytes, head * FrameBytes)
    System.arraycopy(arrivals, head, largerArrivals, 0, first)
    System.arraycopy(arrivals, 0, largerArrivals, first, head)
    pcm = largerPcm
    arrivals = largerArrivals
    head = 0

  private def oldestSeq: Long = nextSeq - droppedAfter.fold(0L)(_.frames) - count

object AudioBuffer:
  /** 20 ms of 16 kHz, mono, 16-bit PCM. */
  final val FrameBytes = 640

  /** A buffer's whole content on its way out. `storage` is the array behind `pcm`, to be reused when nobody reads it.
    */
  final case class Batch(span: Span, pcm: ByteString, storage: Array[Byte])

  private def extend(dropped: Option[Span], seq: Long, atNanos: Long): Option[Span] =
    Some(dropped.fold(Span(seq, seq, atNanos, atNanos))(_.extended(seq, atNanos)))
