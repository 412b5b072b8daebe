package stt

import scala.concurrent.Future
import scala.util.control.NoStackTrace

import org.apache.pekko.NotUsed
import org.apache.pekko.actor.typed.scaladsl.adapter.*
import org.apache.pekko.actor.typed.{ActorRef, ActorSystem}
import org.apache.pekko.http.scaladsl.model.ws.{BinaryMessage, Message, TextMessage}
import org.apache.pekko.stream.{CompletionStrategy, StreamLimitReachedException}
import org.apache.pekko.stream.scaladsl.{Flow, Sink, Source}
import org.apache.pekko.util.ByteString
import stt.SessionActor.{Ack, Command, Outgoing}

/** The WebSocket of a session, as a flow of Pekko HTTP's messages.
  *
  * A violation fails the flow, and Pekko HTTP closes a failed flow with 1011. Coupled, the two halves end together: so
  * a client's close is answered at once.
  */
object SessionFlow:
  final class Violation(message: String) extends Exception(message), NoStackTrace

  /** A start of this length is none, and is not collected further. */
  private val StartCharsMax = 64L * 1024

  def apply(session: ActorRef[Command])(using ActorSystem[?]): Flow[Message, Message, NotUsed] =
    Flow.fromSinkAndSourceCoupled(incoming(session), outgoing(session))

  private def incoming(session: ActorRef[Command])(using ActorSystem[?]): Sink[Message, NotUsed] =
    Flow[Message].zipWithIndex
      .mapAsync(1)(read)
      // Without the stack trace, because Pekko HTTP logs why a flow failed.
      .mapError { case _: StreamLimitReachedException => Violation("the message is too long") }
      .to(
        Sink.actorRefWithBackpressure(session.toClassic, Command.Opened, Ack, Command.Ended, _ => Command.Ended)
      )

  private def outgoing(session: ActorRef[Command]): Source[Message, NotUsed] =
    Source
      .actorRefWithBackpressure[Outgoing](
        Command.Sent,
        { case Outgoing.Complete => CompletionStrategy.draining },
        { case Outgoing.Fail(reason) => Violation(reason) },
      )
      .mapMaterializedValue: source =>
        session ! Command.Connected(source)
        NotUsed
      .collect { case Outgoing.Text(json) => TextMessage(json) }

  /** Reads the message with this index. A message that came in several reads or fragments is a stream. */
  private[stt] def read(message: Message, index: Long)(using system: ActorSystem[?]): Future[Command] =
    import system.executionContext
    message match
      case TextMessage.Strict(text) if index == 0 => start(text)
      case text: TextMessage if index == 0 =>
        text.textStream.limitWeighted(StartCharsMax)(_.length).runReduce(_ + _).flatMap(start)
      case BinaryMessage.Strict(pcm) if index > 0 => frame(pcm)
      case binary: BinaryMessage if index > 0 =>
        binary.dataStream.limitWeighted(Session.FrameBytes)(_.length).runFold(ByteString.empty)(_ ++ _).flatMap(frame)
      case _ => Future.failed(Violation("the first message is a text, and all others are binary"))

  private def start(text: String): Future[Command] =
    if Messages.isStart(text) then Future.successful(Command.Start)
    else Future.failed(Violation("the first message is no start"))

  private def frame(pcm: ByteString): Future[Command] =
    if pcm.length == Session.FrameBytes then Future.successful(Command.Frame(pcm))
    else Future.failed(Violation(s"a frame has ${Session.FrameBytes} bytes"))
