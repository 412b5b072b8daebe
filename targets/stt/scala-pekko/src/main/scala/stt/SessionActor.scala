package stt

import java.util.concurrent.ThreadLocalRandom

import org.apache.pekko.actor.Cancellable
import org.apache.pekko.actor.typed.scaladsl.{ActorContext, Behaviors}
import org.apache.pekko.actor.typed.{Behavior, PostStop}
import org.apache.pekko.io.Tcp
import org.apache.pekko.util.ByteString
import stt.ConnectionActor.{Command, Socket, Written}
import stt.inference.InferenceClient
import stt.session.Session
import stt.session.Session.{Idle, Tick, Waiting}
import stt.websocket.FrameDecoder.Progress
import stt.websocket.{CloseReason, FrameDecoder, Frames}

/** A session: moves bytes, time and answers between the world and a [[Session]].
  *
  * Its two behaviours are the session's two states. `idle` alone starts a request, and becomes `waiting` by that;
  * `waiting` has nothing to start one with.
  */
object SessionActor:
  /** Begins the session on a socket whose 101 is being written; `rest` is what the client sent behind its handshake. */
  def apply(gateway: Gateway, socket: Socket, rest: ByteString): Behavior[Command] = Behaviors.setup: context =>
    val now = gateway.clock()
    val jitter = (ThreadLocalRandom.current.nextDouble() * gateway.config.flushPhaseJitterNanos).toLong
    val idle = Session.open(gateway.config.session, jitter, now)
    val actor = new SessionActor(gateway, socket, context, idle.session)
    actor.begin(idle, rest)

  /** Two ticks of the scheduler. */
  private val ReadBeforeTickNanos = 10_000_000L

private final class SessionActor(
    gateway: Gateway,
    socket: Socket,
    context: ActorContext[Command],
    session: Session,
) extends FrameDecoder.Sink:
  import SessionActor.*

  private val decoder = FrameDecoder(this)
  private val readPaceNanos = gateway.config.readPaceMs * 1_000_000L

  /** When what is being decoded was read. */
  private var readAtNanos = 0L

  /** Only the last ping needs its answer (RFC 6455, section 5.5.3), so a flood of pings is no queue. */
  private var pong = Option.empty[ByteString]

  private var timer: Cancellable = Cancellable.alreadyCancelled
  private var timerDueNanos = Long.MaxValue
  private var holdsPlace = true
  private var hasJustStarted = false
  private var batches = 0L

  private var inFlight = Option.empty[InferenceClient.Call]

  private def begin(state: Idle, rest: ByteString): Behavior[Command] =
    armTimer(state.dueNanos)
    val behavior = idle(state)
    received(rest, behavior)

  private def idle(state: Idle): Behavior[Command] =
    handling(state.dueNanos):
      val now = gateway.clock()
      session.expired(now) match
        case Some(reason) => close(reason)
        case None =>
          state.tick(now, () => gateway.jobs.acquire()) match
            case Tick.Nothing            => settled(Behaviors.same, state.dueNanos)
            case Tick.Flush(batch, next) => settled(request(batch.pcm, next), next.dueNanos)

  /** Sends a batch, and waits for its answer: the one place where that is done. */
  private def request(pcm: ByteString, next: Waiting): Behavior[Command] =
    batches += 1
    val batch = batches
    val self = context.self
    inFlight = Some(gateway.inference.infer(pcm)(result => self ! Command.Answered(batch, result)))
    waiting(next)

  private def waiting(state: Waiting): Behavior[Command] =
    def answered(result: Either[Failure, Inference]): Behavior[Command] =
      giveUpRequest()
      val next = state.settle(gateway.clock(), result)
      settled(idle(next), next.dueNanos)
    handling(state.dueNanos, answered):
      val now = gateway.clock()
      if state.isOverdue(now) then answered(Left(Failure.timeout))
      else
        session.expired(now) match
          case Some(reason) => close(reason)
          case None =>
            state.tick(now)
            settled(Behaviors.same, state.dueNanos)

  /** What both behaviours do alike; `onWake` is what the timer was set for. */
  private def handling(
      dueNanos: => Long,
      onAnswer: Either[Failure, Inference] => Behavior[Command] = _ => Behaviors.same,
  )(onWake: => Behavior[Command]): Behavior[Command] =
    Behaviors
      .receiveMessage[Command]:
        case Command.Socket(Tcp.Received(data)) => received(data, Behaviors.same)
        case Command.Wake =>
          timerDueNanos = Long.MaxValue
          onWake
        case Command.Answered(batch, result)    => if batch == batches then onAnswer(result) else Behaviors.same
        case Command.Socket(Written) =>
          socket.onWritten()
          session.sent()
          write()
          endOfDrain.getOrElse(Behaviors.same)
        case Command.Socket(_: Tcp.ConnectionClosed) => Behaviors.stopped
        case Command.ReadOn =>
          socket.readOn()
          Behaviors.same
        case Command.Drain(closeAtNanos) =>
          session.drain(closeAtNanos)
          settled(Behaviors.same, dueNanos)
        case Command.Socket(_) | Command.HttpAnswered(_) | Command.GiveUp => Behaviors.same
      .receiveSignal:
        case (_, PostStop) =>
          release()
          Behaviors.same

  private def received(data: ByteString, next: Behavior[Command]): Behavior[Command] =
    readAtNanos = gateway.clock()
    val bytes = data.toArrayUnsafe()
    decoder.feed(bytes, 0, bytes.length) match
      case Progress.More =>
        if hasJustStarted then
          // Only the schedule that begins now knows when the first tick is due.
          hasJustStarted = false
          armTimer(session.phaseDueNanos)
        if readPaceNanos > 0 then pauseReading() else socket.readOn()
        next
      case Progress.Violation(reason) => close(reason)
      case Progress.Closed(payload)   => end(Frames.close(payload))

  /** Reads on after the pace, or a little before the next tick, so that the flush has what has arrived. */
  private def pauseReading(): Unit =
    val untilTick = timerDueNanos - readAtNanos - ReadBeforeTickNanos
    val _ = socket.after(if untilTick > 0 then math.min(readPaceNanos, untilTick) else readPaceNanos, Command.ReadOn)

  def start(text: Array[Byte]): Option[CloseReason] =
    hasJustStarted = true
    session.onStart(readAtNanos, text)

  def frame(source: Array[Byte], offset: Int, key: Int): Option[CloseReason] =
    session.onFrame(readAtNanos, source, offset, key)

  def ping(payload: Array[Byte]): Unit =
    pong = Some(Frames.pong(payload))
    write()

  /** After anything but a read: writes what there is, counts, and sets the timer. */
  private def settled(next: Behavior[Command], dueNanos: Long): Behavior[Command] =
    write()
    gateway.metrics.fold(session.tally)
    endOfDrain.getOrElse:
      armTimer(dueNanos)
      next

  /** Writes the next of what there is to write, unless a write is on its way: the socket's actor has no queue. */
  private def write(): Unit =
    if !socket.isWriting then
      pong match
        case Some(frame) =>
          pong = None
          socket.write(frame)
        case None => session.nextToSend().foreach(message => socket.write(Frames.text(message)))

  /** One timer for all that a session waits for. */
  private def armTimer(dueNanos: Long): Unit =
    if dueNanos != timerDueNanos then
      val _ = timer.cancel()
      timerDueNanos = dueNanos
      timer = socket.after(dueNanos - gateway.clock(), Command.Wake)

  /** The close of a draining session that owes nothing any more. */
  private def endOfDrain: Option[Behavior[Command]] =
    Option.when(session.isDraining && inFlight.isEmpty && session.unsent == 0)(close(CloseReason.GoingAway))

  private def close(reason: CloseReason): Behavior[Command] = end(Frames.close(reason))

  private def end(last: ByteString): Behavior[Command] =
    val _ = timer.cancel()
    release()
    ConnectionActor.ending(socket, last)

  /** Gives back what the session holds. Its place is free before its close is through: the next client may have it. */
  private def release(): Unit =
    giveUpRequest()
    gateway.metrics.fold(session.tally)
    if holdsPlace then
      holdsPlace = false
      gateway.sessions.release()

  /** Nothing to an answered request but that its job is free. */
  private def giveUpRequest(): Unit =
    inFlight.foreach: call =>
      inFlight = None
      call.abandon()
      gateway.jobs.release()
