package stt

import java.net.InetSocketAddress

import scala.concurrent.duration.*

import org.apache.pekko.actor.typed.scaladsl.adapter.*
import org.apache.pekko.actor.{Actor, ActorLogging, ActorRef, Props, Terminated, Timers}
import org.apache.pekko.io.Inet.SO
import org.apache.pekko.io.Tcp.SO as TcpSO
import org.apache.pekko.io.{IO, Tcp}

/** Listens, and gives each connection an actor of its own: a child, so that a crash ends one session only. It is a
  * classic actor, because a new connection is known by its sender alone, which a typed actor does not see.
  */
final class Acceptor(gateway: Gateway, front: HttpFront) extends Actor, ActorLogging, Timers:
  import Acceptor.*

  private var listener = ActorRef.noSender

  /** Connections taken since the listener was last asked. */
  private var accepted = 0

  IO(Tcp)(using context.system) ! Tcp.Bind(
    self,
    InetSocketAddress(gateway.config.port),
    backlog = Backlog,
    options = List(SO.ReuseAddress(true), SO.SendBufferSize(SendBufferBytes), TcpSO.TcpNoDelay(true)),
    // One read stands in a mailbox at most; what has not been asked for stays in the kernel, where the client feels it.
    pullMode = true,
  )

  def receive: Receive =
    case Tcp.Bound(address) =>
      log.debug("listening at {}", address)
      acceptMore(sender())
    case Tcp.CommandFailed(it) =>
      System.err.println(s"PORT=${gateway.config.port}: cannot listen: ${it.failureMessage}")
      sys.exit(1)
    case _: Tcp.Connected => connected(sender())
    case Drain =>
      gateway.isDraining = true
      val drainNanos = gateway.config.drainTimeoutNanos
      val closeAt = System.nanoTime + drainNanos - math.min(CloseHandshakeNanos, drainNanos / 4)
      context.children.foreach: connection =>
        val _ = context.watch(connection)
        connection ! ConnectionActor.Command.Drain(closeAt)
      timers.startSingleTimer(DrainOver, DrainOver, drainNanos.nanos)
      drainUntilGone(context.children.toSet)

  /** In pull mode the listener too takes only what it was asked to take. */
  private def acceptMore(by: ActorRef): Unit =
    listener = by
    accepted = 0
    listener ! Tcp.ResumeAccepting(AcceptBatch)

  private def connected(connection: ActorRef): Unit =
    val _ = context.spawnAnonymous(ConnectionActor(gateway, front, connection))
    accepted += 1
    if accepted == AcceptBatch then acceptMore(listener)

  private def drainUntilGone(connections: Set[ActorRef]): Unit =
    if connections.isEmpty then sys.exit(0) else context.become(draining(connections))

  /** Still listens, so that /health can say so. */
  private def draining(connections: Set[ActorRef]): Receive =
    case _: Tcp.Connected => connected(sender())
    case Terminated(connection) => drainUntilGone(connections - connection)
    case DrainOver              => sys.exit(0)
    case _                      => ()

object Acceptor:
  def props(gateway: Gateway, front: => HttpFront): Props = Props(Acceptor(gateway, front))

  /** SIGTERM has come. */
  case object Drain
  private case object DrainOver

  /** Connections that the kernel holds ready while this process is busy: a burst must not be dropped, for a SYN that
    * is dropped comes again after one second, then three. The kernel's own limit (somaxconn) applies too.
    */
  private val Backlog = 4096

  /** Connections taken at a time: a burst is taken faster than it comes. */
  private val AcceptBatch = 128

  /** The kernel's buffer counts for a client that does not read. A partial takes some 350 bytes. */
  private val SendBufferBytes = 32 * 1024

  /** Kept from the drain's time for the close itself. */
  private val CloseHandshakeNanos = 250_000_000L
