package stt

import java.util.concurrent.ThreadLocalRandom

import scala.collection.mutable
import scala.concurrent.duration.*

import org.apache.pekko.actor.ActorRef
import org.apache.pekko.actor.typed.scaladsl.adapter.*
import org.apache.pekko.actor.typed.scaladsl.{AbstractBehavior, ActorContext, Behaviors, TimerScheduler}
import org.apache.pekko.actor.typed.Behavior
import org.apache.pekko.util.ByteString

/** A session: the rules of [[Session]] tied to its WebSocket, its timers and the inference client.
  *
  * Its WebSocket is the two ends that [[SessionFlow]] makes: a sink that sends it what came, one message at a time, and
  * a source that it sends messages to, one at a time. What waits for that source is the outbox.
  */
object SessionActor:
  enum Command:
    /** The WebSocket's source is there. */
    case Connected(source: ActorRef)

    /** The WebSocket's sink is there. It waits for an [[Ack]], now and after each of the client's messages. */
    case Opened

    /** The client's first message. */
    case Start

    /** Each further message of the client. Anything else fails the stream. */
    case Frame(pcm: ByteString)

    /** The source has passed on a message. */
    case Sent

    /** The WebSocket has ended. */
    case Ended
    case StartTimeout
    case Tick
    case Answered(batch: Batch, elapsedNanos: Long, result: Either[Failure, Inference])

    /** The gateway shuts down: close after the answer to what is in flight. */
    case Drain

    /** The time to drain is over. */
    case Close

  enum Outgoing:
    case Text(json: String)
    case Complete
    case Fail(reason: String)

  /** Tells the sink that the next message may come. */
  case object Ack

  def apply(config: Config, metrics: Metrics, inference: InferenceClient): Behavior[Command] =
    Behaviors.setup: context =>
      Behaviors.withTimers: timers =>
        timers.startSingleTimer(Command.StartTimeout, config.startTimeout)
        new SessionActor(config, metrics, inference, context, timers)

private final class SessionActor(
    config: Config,
    metrics: Metrics,
    inference: InferenceClient,
    ctx: ActorContext[SessionActor.Command],
    timers: TimerScheduler[SessionActor.Command],
) extends AbstractBehavior[SessionActor.Command](ctx):
  import SessionActor.*

  private var session = Option.empty[Session]
  private var sink = ActorRef.noSender
  private var source = Option.empty[ActorRef]
  private val outbox = mutable.Queue.empty[String]

  /** Whether the source has a message that it has not passed on. */
  private var isSending = false
  private var isDraining = false
  private var isClosing = false

  def onMessage(command: Command): Behavior[Command] = command match
    case Command.Connected(ref) =>
      source = Some(ref)
      settle()
    case Command.Opened =>
      sink = context.toClassic.sender()
      sink ! Ack
      this
    case Command.Start =>
      sink ! Ack
      start()
      this
    case Command.Frame(pcm) =>
      sink ! Ack
      session.filterNot(_ => isClosing).fold(this)(frame(_, pcm))
    case Command.Sent =>
      isSending = false
      settle()
    case Command.Tick =>
      session.foreach(tick)
      settle()
    case Command.Answered(batch, elapsedNanos, result) =>
      session.foreach(answered(_, batch, elapsedNanos, result))
      settle()
    case Command.StartTimeout => end(Outgoing.Fail("no start in time"))
    case Command.Drain =>
      isDraining = true
      settle()
    case Command.Close => end(Outgoing.Complete)
    case Command.Ended => Behaviors.stopped

  private def start(): Unit =
    timers.cancel(Command.StartTimeout)
    val jitterNanos = (ThreadLocalRandom.current.nextDouble() * config.flushPhaseJitter.toNanos).toLong
    val settings = Session.Settings(config.flushInterval.toNanos, config.maxBufferFrames, config.overflowPolicy)
    val started = Session(settings, System.nanoTime + jitterNanos)
    session = Some(started)
    armTimer(started)

  private def armTimer(open: Session): Unit =
    timers.startSingleTimer(Command.Tick, math.max(0L, open.nextTickNanos - System.nanoTime).nanos)

  private def frame(open: Session, pcm: ByteString): Behavior[Command] =
    val offer = open.offer(pcm, System.nanoTime)
    if offer == Offer.Refused then end(Outgoing.Fail("the input buffer is full"))
    else
      metrics.frames.increment()
      if offer == Offer.Dropped then metrics.framesDropped.increment()
      this

  private def tick(open: Session): Unit =
    val tick = open.tick(System.nanoTime, config.outboxMessages - unsent, metrics.jobs.acquire)
    tick.dropped.foreach: span =>
      fail(open, span, Failure(FailureKind.Overflow, "input buffer full, frames dropped"), tick.latenessNanos)
    tick.deferred.foreach(metrics.deferred)
    tick.batch.foreach(request)
    armTimer(open)

  /** The one place where a request begins. Its job is over when it is, even if the session ends before. */
  private def request(batch: Batch): Unit =
    metrics.bufferFrames.observe(batch.span.frames.toDouble)
    metrics.flushLatenessSeconds.observe(batch.latenessNanos / 1e9)
    val sentAtNanos = System.nanoTime
    val self = context.self
    inference
      .infer(batch.pcm)
      .foreach { result =>
        val elapsedNanos = System.nanoTime - sentAtNanos
        metrics.jobs.release()
        metrics.inferenceSeconds.observe(elapsedNanos / 1e9)
        self ! Command.Answered(batch, elapsedNanos, result)
      }(using context.executionContext)

  private def answered(open: Session, batch: Batch, elapsedNanos: Long, result: Either[Failure, Inference]): Unit =
    open.answered()
    if !isClosing then
      result match
        case Right(answer) =>
          metrics.partials.increment()
          outbox += Messages.partial(batch, answer, config.cpuPasses)
        case Left(failure) => fail(open, batch.span, failure, batch.latenessNanos, Some(elapsedNanos))

  private def fail(open: Session, span: Span, failure: Failure, latenessNanos: Long, elapsedNanos: Option[Long] = None)
      : Unit =
    metrics.failed(failure.kind)
    val around =
      Circumstances(System.nanoTime, latenessNanos, elapsedNanos, metrics.jobs.inUse, open.bufferFrames)
    outbox += Messages.error(span, failure, around)

  private def unsent: Int = outbox.length + (if isSending then 1 else 0)

  /** Sends the next message, if the source takes one; closes a draining session that owes nothing any more. */
  private def settle(): Behavior[Command] =
    if isClosing then this
    else
      source.filter(_ => !isSending && outbox.nonEmpty).foreach: ref =>
        isSending = true
        // The source tells the sender when it has passed on the message.
        ref.tell(Outgoing.Text(outbox.dequeue()), context.self.toClassic)
      if isDraining && outbox.isEmpty && !session.exists(_.isBusy) then end(Outgoing.Complete)
      else this

  /** Ends the WebSocket, which says so with `Ended`; before there is one, the session just stops. */
  private def end(last: Outgoing): Behavior[Command] =
    isClosing = true
    timers.cancelAll()
    source match
      case Some(ref) =>
        ref ! last
        this
      case None => Behaviors.stopped
