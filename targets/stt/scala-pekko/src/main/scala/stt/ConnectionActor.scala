package stt

import java.util.concurrent.TimeUnit.NANOSECONDS

import scala.concurrent.duration.FiniteDuration
import scala.util.{Failure as Failed, Success, Try}

import org.apache.pekko.actor.typed.scaladsl.adapter.*
import org.apache.pekko.actor.typed.scaladsl.{ActorContext, Behaviors}
import org.apache.pekko.actor.typed.Behavior
import org.apache.pekko.actor.{ActorRef, Cancellable}
import org.apache.pekko.io.Tcp
import org.apache.pekko.util.ByteString

/** One connection: the request that opens it, and then, if that was an upgrade, the session. */
object ConnectionActor:
  enum Command:
    /** What the socket's actor says. */
    case Socket(event: Tcp.Event)

    /** The session's timer is due. */
    case Wake

    /** The connection has taken too long, to begin or to end. */
    case GiveUp

    /** The time to read on, where reads are paced. */
    case ReadOn
    case Answered(batch: Long, result: Either[Failure, Inference])
    case HttpAnswered(answer: Try[HttpFront.Answer])

    /** The gateway shuts down; sessions close at `closeAtNanos` at the latest. */
    case Drain(closeAtNanos: Long)

  /** The kernel has taken a write. */
  case object Written extends Tcp.Event

  /** A request head must be there by then. */
  private val HeadTimeoutNanos = 10_000_000_000L

  /** Heads that are longer go to the parser as they are, and are refused there. */
  private val HeadBytesMax = 16 * 1024

  private val headEnd = ByteString("\r\n\r\n")

  def apply(gateway: Gateway, front: HttpFront, connection: ActorRef): Behavior[Command] = Behaviors.setup: context =>
    val socket = Socket(connection, context)
    socket.register()
    val timeout = socket.after(HeadTimeoutNanos, Command.GiveUp)
    head(gateway, front, socket, timeout, ByteString.empty)

  /** Collects the head of the request. */
  private def head(
      gateway: Gateway,
      front: HttpFront,
      socket: Socket,
      timeout: Cancellable,
      begun: ByteString,
  ): Behavior[Command] =
    Behaviors.receivePartial:
      case (context, Command.Socket(Tcp.Received(data))) =>
        val bytes = begun ++ data
        // The end may lie across the seam.
        val end = bytes.indexOfSlice(headEnd, math.max(0, begun.length - headEnd.length))
        if end < 0 && bytes.length < HeadBytesMax then
          socket.readOn()
          head(gateway, front, socket, timeout, bytes)
        else
          val _ = timeout.cancel()
          val length = if end < 0 then bytes.length else end + headEnd.length
          val (request, rest) = bytes.splitAt(length)
          front.admit(request) match
            case Some(response) =>
              socket.write(response)
              SessionActor(gateway, socket, rest.compact)
            case None =>
              context.pipeToSelf(front.answer(request))(Command.HttpAnswered(_))
              answering(gateway, socket, rest.compact)
      case (_, Command.Socket(_: Tcp.ConnectionClosed) | Command.Drain(_)) => Behaviors.stopped
      case (_, Command.GiveUp) =>
        socket.abort()
        Behaviors.stopped

  /** Waits for the HTTP stream, which always ends. Not even a lost connection ends this, for a place among the
    * sessions may have been taken and must be given back.
    */
  private def answering(gateway: Gateway, socket: Socket, rest: ByteString): Behavior[Command] =
    Behaviors.receiveMessagePartial:
      case Command.HttpAnswered(Success(HttpFront.Answer.Session(head))) =>
        socket.write(head)
        SessionActor(gateway, socket, rest)
      case Command.HttpAnswered(Success(HttpFront.Answer.Plain(bytes))) =>
        ending(socket, bytes)
      case Command.HttpAnswered(Failed(_)) =>
        socket.abort()
        Behaviors.stopped
      case _ => Behaviors.same

  /** Writes `last` and closes the socket with care: shuts it for writing and reads it empty until the client closes
    * too. A socket that is closed with unread data sends a reset, and that makes the client's kernel throw away what
    * it had received, the close code included.
    */
  def ending(socket: Socket, last: ByteString): Behavior[Command] =
    val _ = socket.after(LingerNanos, Command.GiveUp)
    socket.readOn()
    if socket.isWriting then finishing(socket, Some(last))
    else
      socket.write(last)
      finishing(socket, None)

  private def finishing(socket: Socket, last: Option[ByteString]): Behavior[Command] =
    Behaviors.receiveMessage:
      case Command.Socket(Written) =>
        socket.onWritten()
        last.fold(socket.shutdownOutput())(socket.write)
        finishing(socket, None)
      case Command.Socket(_: Tcp.Received) =>
        socket.readOn()
        Behaviors.same
      case Command.Socket(_: Tcp.ConnectionClosed) => Behaviors.stopped
      case Command.GiveUp =>
        socket.abort()
        Behaviors.stopped
      case _ => Behaviors.same

  /** How long the end of a connection may take. */
  private val LingerNanos = 1_000_000_000L

  /** This actor's end of its socket. */
  final class Socket(connection: ActorRef, context: ActorContext[Command]):
    private val events = context.messageAdapter[Tcp.Event](Command.Socket(_)).toClassic
    private var writing = false

    /** Hears of the socket from now on, and asks for the first read. */
    def register(): Unit =
      connection.tell(Tcp.Register(events), events)
      readOn()

    def isWriting: Boolean = writing

    /** To be called when nothing is being written, for the socket's actor has no queue. */
    def write(bytes: ByteString): Unit =
      writing = true
      connection.tell(Tcp.Write(bytes, Written), events)

    def onWritten(): Unit = writing = false

    /** Asks for one more read, when what was read has been dealt with: so no more than one is ever unhandled. */
    def readOn(): Unit = connection.tell(Tcp.ResumeReading, events)

    def shutdownOutput(): Unit = connection.tell(Tcp.ConfirmedClose, events)

    def abort(): Unit = connection.tell(Tcp.Abort, events)

    def after(nanos: Long, command: Command): Cancellable =
      context.scheduleOnce(FiniteDuration(math.max(0L, nanos), NANOSECONDS), context.self, command)
