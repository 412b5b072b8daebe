package stt.session

import scala.collection.mutable

import stt.websocket.CloseReason
import stt.{ErrorMessage, Failure, Inference, Messages, Partial}

/** The configuration that a session needs. */
final case class Settings(
    flushIntervalNanos: Long,
    startTimeoutNanos: Long,
    inferenceTimeoutNanos: Long,
    bufferFramesMax: Int,
    overflowPolicy: OverflowPolicy,
    outboxMessagesMax: Int,
    cpuPasses: Long,
)

/** A session without I/O: frames, times and answers go in; batches and messages come out. It has no clock, no socket
  * and no actor, so that every rule can be tested with simulated time.
  *
  * A session is in one of two states, [[Session.Idle]] and [[Session.Waiting]]. Only an `Idle` can make a batch, and
  * doing so gives a `Waiting`; only its batch's end gives an `Idle` again. So a second request in flight is not
  * checked for: there is no method that could ask for it.
  */
final class Session private (settings: Settings, jitterNanos: Long, nowNanos: Long):
  import Session.*

  private var phase: Phase = Phase.AwaitingStart(nowNanos + settings.startTimeoutNanos)
  private val framesExpected = (settings.flushIntervalNanos / FrameNanos).min(Int.MaxValue / 2).toInt + 2
  private val audio = AudioBuffer(settings.overflowPolicy, settings.bufferFramesMax, framesExpected)
  private val waiting = mutable.Queue.empty[Array[Byte]]
  private var sending = false

  /** An array that a batch has left behind. */
  private var spare = Array.emptyByteArray

  val tally: Tally = Tally()

  /** The first message, a text. */
  def onStart(nowNanos: Long, text: Array[Byte]): Option[CloseReason] = phase match
    case Phase.AwaitingStart(_) if Messages.isStart(text) =>
      phase = Phase.Streaming(Schedule(nowNanos + jitterNanos, settings.flushIntervalNanos))
      None
    case Phase.Draining(_) => None
    case _                 => Some(CloseReason.Protocol)

  /** A frame at `offset` of `source`, masked with `key`. */
  def onFrame(nowNanos: Long, source: Array[Byte], offset: Int, key: Int): Option[CloseReason] = phase match
    case Phase.Streaming(_) =>
      audio.push(nowNanos, source, offset, key) match
        case Pushed.Kept =>
          tally.frames += 1
          None
        case Pushed.Dropped =>
          tally.frames += 1
          tally.framesDropped += 1
          None
        case Pushed.Refused => Some(CloseReason.Overflow)
    case Phase.Draining(_)      => None
    case Phase.AwaitingStart(_) => Some(CloseReason.Protocol)

  /** The gateway shuts down: only the request in flight is still answered, if that comes before `untilNanos`. */
  def drain(untilNanos: Long): Unit = phase = Phase.Draining(untilNanos)

  def isDraining: Boolean = phase.isInstanceOf[Phase.Draining]

  /** When the phase is next due. */
  def phaseDueNanos: Long = phase match
    case Phase.AwaitingStart(until) => until
    case Phase.Streaming(schedule)  => schedule.nextNanos
    case Phase.Draining(until)      => until

  /** The end of the wait for a start, or of the drain, if it has come. */
  def expired(nowNanos: Long): Option[CloseReason] = phase match
    case Phase.AwaitingStart(until) if nowNanos - until >= 0 => Some(CloseReason.Protocol)
    case Phase.Draining(until) if nowNanos - until >= 0      => Some(CloseReason.GoingAway)
    case _                                                   => None

  /** The next message to write, unless one is being written. It counts as unsent until [[sent]]. */
  def nextToSend(): Option[Array[Byte]] =
    if sending || waiting.isEmpty then None
    else
      sending = true
      Some(waiting.dequeue())

  /** What [[nextToSend]] gave has been taken by the kernel. */
  def sent(): Unit = sending = false

  def unsent: Int = waiting.length + (if sending then 1 else 0)

  private def dueTick(nowNanos: Long): Option[Long] = phase match
    case Phase.Streaming(schedule) => schedule.due(nowNanos)
    case _                         => None

  /** Names frames that will have no transcript. Like a partial, an error is made only when nothing is in flight, so
    * that it follows everything older.
    */
  private def report(failure: Failure, span: Span, now: Long, lateness: Long, elapsed: Option[Long]): Unit =
    tally.errors(failure.kind.ordinal) += 1
    waiting += Messages.render(ErrorMessage(failure, span, now, lateness, elapsed, 0, audio.frames))

object Session:
  /** Duration of one frame. */
  private val FrameNanos = 20_000_000L

  private enum Phase:
    case AwaitingStart(untilNanos: Long)
    case Streaming(schedule: Schedule)
    case Draining(untilNanos: Long)

  /** A session that was opened at `nowNanos` and awaits its start. */
  def open(settings: Settings, jitterNanos: Long, nowNanos: Long): Idle =
    Idle(Session(settings, jitterNanos, nowNanos), settings)

  /** What a tick came to. */
  enum Tick:
    case Nothing
    case Flush(batch: AudioBuffer.Batch, next: Waiting)

  /** Nothing is in flight. */
  final class Idle private[Session] (val session: Session, settings: Settings):
    def dueNanos: Long = session.phaseDueNanos

    /** Does the tick that is due at `nowNanos`, if one is: names the dropped frames, then makes one batch of the
      * whole buffer. `reserve` takes one of the gateway's jobs, or says that there is none.
      */
    def tick(nowNanos: Long, reserve: () => Boolean): Tick =
      session.dueTick(nowNanos).filter(_ => session.audio.isWaiting).fold(Tick.Nothing): scheduled =>
        val lateness = nowNanos - scheduled
        if session.unsent >= settings.outboxMessagesMax then deferred(Deferral.Outbox)
        else
          // Older than the buffer and newer than the last batch: this is their place in the order.
          session.audio.takeDropped().foreach(session.report(Failure.overflow, _, nowNanos, lateness, None))
          if session.audio.frames == 0 then Tick.Nothing
          else if !reserve() then deferred(Deferral.Jobs)
          else flush(nowNanos, lateness)

    private def deferred(reason: Deferral): Tick =
      session.tally.deferred(reason.ordinal) += 1
      Tick.Nothing

    private def flush(nowNanos: Long, lateness: Long): Tick =
      val batch = session.audio.take(session.spare)
      session.spare = Array.emptyByteArray
      session.tally.flush = Some((batch.span.frames, lateness))
      Tick.Flush(batch, Waiting(session, settings, batch, nowNanos, lateness))

  /** One request is in flight. */
  final class Waiting private[Session] (
      val session: Session,
      settings: Settings,
      batch: AudioBuffer.Batch,
      sentAtNanos: Long,
      lateness: Long,
  ):
    private val deadlineNanos = sentAtNanos + settings.inferenceTimeoutNanos

    def dueNanos: Long =
      val phase = session.phaseDueNanos
      if deadlineNanos - phase < 0 then deadlineNanos else phase

    def isOverdue(nowNanos: Long): Boolean = nowNanos - deadlineNanos >= 0

    /** Does the tick that is due, if one is: the audio waits. */
    def tick(nowNanos: Long): Unit =
      if session.dueTick(nowNanos).isDefined && session.audio.isWaiting then
        session.tally.deferred(Deferral.InFlight.ordinal) += 1

    /** The request has ended. */
    def settle(nowNanos: Long, result: Either[Failure, Inference]): Idle =
      val elapsed = nowNanos - sentAtNanos
      session.tally.inferenceNanos = Some(elapsed)
      result match
        case Right(inference) =>
          session.tally.partials += 1
          session.waiting += Messages.render(Partial(batch.span, inference, settings.cpuPasses, lateness))
          // An answer to every byte shows that the whole body has been sent: nobody reads the array any more. (A failed
          // request may still be on its way out, and leaves its array to the garbage collector.)
          if inference.audioBytes == batch.pcm.length then session.spare = batch.storage
        case Left(failure) => session.report(failure, batch.span, nowNanos, lateness, Some(elapsed))
      Idle(session, settings)
