package stt

import scala.collection.mutable

import org.apache.pekko.util.ByteString

/** A contiguous range of frames, and when the gateway received its ends (nanoseconds of the monotonic clock). */
final case class Span(oldestSeq: Long, newestSeq: Long, oldestAtNanos: Long, newestAtNanos: Long):
  def frames: Long = newestSeq - oldestSeq + 1

/** What one inference request is about. */
final case class Batch(span: Span, pcm: ByteString, latenessNanos: Long)

/** What became of a frame. With `Refused` it was not accepted, and the session must be closed. */
enum Offer:
  case Kept, Dropped, Refused

/** Why a tick that found audio did not flush. */
enum Deferral(val reason: String):
  /** The session's request has not come back. */
  case InFlight extends Deferral("inflight")

  /** The gateway has `MAX_INFLIGHT_JOBS` requests in flight. */
  case Jobs extends Deferral("jobs")

  /** The client has not taken `OUTBOX_MESSAGES` messages. */
  case Outbox extends Deferral("outbox")

/** What a tick came to, to be dealt with in this order. */
final case class Tick(
    latenessNanos: Long,
    dropped: Option[Span] = None,
    deferred: Option[Deferral] = None,
    batch: Option[Batch] = None,
)

object Session:
  /** 20 ms of 16 kHz, mono, 16-bit PCM. */
  final val FrameBytes = 640

  final case class Settings(flushIntervalNanos: Long, maxBufferFrames: Int, overflowPolicy: OverflowPolicy)

  private final case class Frame(pcm: ByteString, atNanos: Long)

  private def extended(span: Option[Span], seq: Long, atNanos: Long): Option[Span] =
    Some(span.fold(Span(seq, seq, atNanos, atNanos))(_.copy(newestSeq = seq, newestAtNanos = atNanos)))

/** A session's rules without I/O: schedule, buffer, ledger, overflow. The clock is passed in. `originNanos` is the
  * start plus the jitter.
  */
final class Session(settings: Session.Settings, originNanos: Long):
  import Session.*

  private var ticks = 1L
  private var lastSeq = 0L
  private val buffer = mutable.ArrayDeque.empty[Frame]

  // Frames that were dropped and are not named yet: those older than the buffer, and those newer (DropNewest). Each is
  // one range, because nothing is kept between two drops on the same side.
  private var before = Option.empty[Span]
  private var behind = Option.empty[Span]
  private var inFlight = false

  def nextTickNanos: Long = originNanos + ticks * settings.flushIntervalNanos

  def bufferFrames: Int = buffer.length

  /** Whether a request is in flight. */
  def isBusy: Boolean = inFlight

  /** Takes the next frame, and the number that goes with it. */
  def offer(pcm: ByteString, nowNanos: Long): Offer =
    val isFull = buffer.length >= settings.maxBufferFrames
    if isFull && settings.overflowPolicy == OverflowPolicy.Close then Offer.Refused
    else
      lastSeq += 1
      if isFull && settings.overflowPolicy == OverflowPolicy.DropNewest then
        behind = extended(behind, lastSeq, nowNanos)
        Offer.Dropped
      else
        buffer += Frame(pcm, nowNanos)
        if !isFull then Offer.Kept
        else
          before = extended(before, lastSeq - settings.maxBufferFrames, buffer.removeHead().atNanos)
          Offer.Dropped

  /** Runs the tick that is due. `room` is how many messages the outbox takes; `takeJob` takes one of the gateway's
    * jobs, or says that there is none.
    */
  def tick(nowNanos: Long, room: Int, takeJob: () => Boolean): Tick =
    val latenessNanos = math.max(0L, nowNanos - nextTickNanos)
    // Ticks that were missed are passed over; the later ones stay where they are.
    ticks = math.max(ticks, Math.floorDiv(nowNanos - originNanos, settings.flushIntervalNanos)) + 1
    val tick = Tick(latenessNanos)
    if buffer.isEmpty && before.isEmpty then tick
    else if inFlight then tick.copy(deferred = Some(Deferral.InFlight))
    else if room <= 0 then tick.copy(deferred = Some(Deferral.Outbox))
    else
      val dropped = before
      before = None
      val named = tick.copy(dropped = dropped)
      if buffer.isEmpty then named
      else if room - dropped.size <= 0 then named.copy(deferred = Some(Deferral.Outbox))
      else if !takeJob() then named.copy(deferred = Some(Deferral.Jobs))
      else named.copy(batch = Some(flush(latenessNanos)))

  /** The request has ended. */
  def answered(): Unit = inFlight = false

  /** The whole buffer as one batch, which is in flight until [[answered]]. */
  private def flush(latenessNanos: Long): Batch =
    val newestSeq = behind.fold(lastSeq)(_.oldestSeq - 1)
    val span = Span(newestSeq - buffer.length + 1, newestSeq, buffer.head.atNanos, buffer.last.atNanos)
    val pcm = buffer.foldLeft(ByteString.empty)(_ ++ _.pcm)
    buffer.clear()
    before = behind
    behind = None
    inFlight = true
    Batch(span, pcm, latenessNanos)
