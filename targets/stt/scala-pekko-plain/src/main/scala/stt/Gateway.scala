package stt

import scala.concurrent.duration.*

import org.apache.pekko.Done
import org.apache.pekko.actor.typed.scaladsl.{ActorContext, Behaviors, TimerScheduler}
import org.apache.pekko.actor.typed.{ActorRef, ActorSystem, Behavior}

/** The guardian: admits sessions, which are its children, and drains them. */
object Gateway:
  enum Command:
    case Open(replyTo: ActorRef[Admission])
    case Ended(session: ActorRef[SessionActor.Command])
    case IsDraining(replyTo: ActorRef[Boolean])

    /** Closes all sessions; replies when their close frames have had time to leave. */
    case Drain(replyTo: ActorRef[Done])
    case DrainTimeout
    case LingerOver

  enum Admission:
    case Admitted(session: ActorRef[SessionActor.Command])
    case Full
    case Draining

  /** Time for close frames to reach the clients before the process ends. */
  private val Linger = 300.millis

  def apply(config: Config, metrics: Metrics): Behavior[Command] = Behaviors.setup: context =>
    given ActorSystem[?] = context.system
    val inference = InferenceClient(config)
    Behaviors.withTimers: timers =>
      new Gateway(config, metrics, inference, context, timers).serving(Set.empty)

private final class Gateway(
    config: Config,
    metrics: Metrics,
    inference: InferenceClient,
    context: ActorContext[Gateway.Command],
    timers: TimerScheduler[Gateway.Command],
):
  import Gateway.*

  private type Sessions = Set[ActorRef[SessionActor.Command]]

  private def serving(sessions: Sessions): Behavior[Command] = Behaviors.receiveMessagePartial:
    case Command.Open(replyTo) =>
      if metrics.sessions.acquire() then
        val session = context.spawnAnonymous(SessionActor(config, metrics, inference))
        context.watchWith(session, Command.Ended(session))
        metrics.sessionsTotal.increment()
        replyTo ! Admission.Admitted(session)
        serving(sessions + session)
      else
        metrics.sessionsRejected.increment()
        replyTo ! Admission.Full
        Behaviors.same
    case Command.Ended(session) =>
      metrics.sessions.release()
      serving(sessions - session)
    case Command.IsDraining(replyTo) =>
      replyTo ! false
      Behaviors.same
    case Command.Drain(replyTo) if sessions.isEmpty =>
      replyTo ! Done
      draining(sessions, replyTo)
    case Command.Drain(replyTo) =>
      sessions.foreach(_ ! SessionActor.Command.Drain)
      timers.startSingleTimer(Command.DrainTimeout, config.drainTimeout)
      draining(sessions, replyTo)

  private def draining(sessions: Sessions, replyTo: ActorRef[Done]): Behavior[Command] =
    Behaviors.receiveMessagePartial:
      case Command.Open(asking) =>
        asking ! Admission.Draining
        Behaviors.same
      case Command.Ended(session) =>
        metrics.sessions.release()
        val left = sessions - session
        if left.isEmpty then timers.startSingleTimer(Command.LingerOver, Linger)
        draining(left, replyTo)
      case Command.IsDraining(asking) =>
        asking ! true
        Behaviors.same
      case Command.DrainTimeout =>
        sessions.foreach(_ ! SessionActor.Command.Close)
        timers.startSingleTimer(Command.LingerOver, Linger)
        Behaviors.same
      case Command.LingerOver =>
        replyTo ! Done
        Behaviors.same
