package stt.inference

import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.atomic.{AtomicInteger, AtomicReference}

import scala.concurrent.ExecutionContext
import scala.concurrent.duration.*
import scala.util.{Failure as Failed, Success}

import org.apache.pekko.actor.ActorSystem
import org.apache.pekko.http.scaladsl.Http
import org.apache.pekko.http.scaladsl.model.{HttpEntity, HttpRequest, HttpResponse}
import org.apache.pekko.http.scaladsl.settings.ClientConnectionSettings
import org.apache.pekko.stream.scaladsl.{Keep, Sink, Source}
import org.apache.pekko.stream.{KillSwitches, QueueOfferResult}
import stt.inference.InferenceClient.Call
import stt.{Config, Failure}

/** A place for one HTTP/2 connection, made on first use and made anew when lost.
  *
  * Pekko's own managed connection (`managedPersistentHttp2WithPriorKnowledge`) would reconnect by itself, but it
  * answers the requests of a lost connection with a 502 of its own making that cannot be told from the server's. So
  * the plain connection is used, and its requests are failed here when it ends.
  *
  * Two shortcomings of Pekko HTTP 1.3 are dealt with here. It does not tell of a stream that the server resets (see
  * [[ResetWatch]]), and the connection is not to be used for more after that. And a request cannot be cancelled, so a
  * connection with many abandoned ones is given up.
  */
private final class InferenceConnection(config: Config)(using system: ActorSystem):
  import InferenceConnection.*

  private given ExecutionContext = system.dispatcher
  private val live = AtomicReference[Live | Null](null)

  def send(call: Call, request: HttpRequest): Unit =
    if !current().send(call, request) then
      // It had ended, and the request never left: it may try a new one, once.
      if !current().send(call, request) then call.complete(Left(Failure.connection("closed")))

  private def current(): Live = live.get match
    case usable: Live => usable
    case null =>
      this.synchronized:
        live.get match
          case usable: Live => usable
          case null =>
            val made = Live()
            live.set(made)
            made

  /** One connection from its making to its end. */
  private final class Live:
    private val outstanding = ConcurrentHashMap.newKeySet[Call]()

    /** Streams are numbered 1, 3, 5, … in the order of their requests. */
    private val byStream = ConcurrentHashMap[Int, Call]()
    private var nextStream = 1
    private val abandoned = AtomicInteger()
    private val ((queue, killSwitch), done) = Source
      .queue[HttpRequest](RequestsQueuedMax)
      .viaMat(KillSwitches.single)(Keep.both)
      .filter(isWanted)
      .map(numbered)
      .via(flow)
      .toMat(Sink.foreach(onResponse))(Keep.both)
      .run()

    /** Whether the server has ever answered on it. */
    @volatile private var wasUseful = false

    done.onComplete: end =>
      // A connection that could not be made, or was of no use, bars the way for a moment: while the server is down, not
      // every request is to try anew.
      if wasUseful then retire()
      else
        val _ = system.scheduler.scheduleOnce(ReconnectDelay)(retire())
      val cause = end match
        case Failed(error) => Option(error.getMessage).getOrElse(error.getClass.getSimpleName)
        case Success(_)    => "ended by the server"
      outstanding.forEach(call => finish(call, Left(Failure.connection(cause))))

    /** Whether it took the request. */
    def send(call: Call, request: HttpRequest): Boolean =
      call.onAbandoned = () => onAbandoned(call)
      val _ = outstanding.add(call)
      queue.offer(request) match
        case QueueOfferResult.Enqueued => true
        case QueueOfferResult.Dropped =>
          finish(call, Left(Failure.connection("too many requests are queued for it")))
          true
        case _ if wasUseful =>
          // If the end of the connection found the call first, it has been answered.
          forget(call)
          retire()
          false
        case _ =>
          finish(call, Left(Failure.connection("there is none")))
          true

    private def flow =
      val settings = ClientConnectionSettings(system).withTransport(ResetWatch(onReset))
      Http()
        .connectionTo(config.inferenceUrl.host)
        .toPort(config.inferenceUrl.port)
        .withClientConnectionSettings(settings)
        .http2WithPriorKnowledge()

    /** What was abandoned in the queue is not sent: in overload that would delay all that is behind it. */
    private def isWanted(request: HttpRequest): Boolean =
      request.attribute(InferenceClient.CallKey).exists(call => !call.hasEnded)

    private def numbered(request: HttpRequest): HttpRequest =
      request.attribute(InferenceClient.CallKey).foreach: call =>
        call.stream = nextStream
        val _ = byStream.put(nextStream, call)
      nextStream += 2
      request

    private def onReset(stream: Int): Unit =
      byStream.get(stream) match
        case null => ()
        case call => finish(call, Left(Failure.connection("the server reset the stream")))
      wither()

    private def onResponse(response: HttpResponse): Unit =
      wasUseful = true
      response.attribute(InferenceClient.CallKey).foreach: call =>
        response.entity match
          // Nearly always: `min-collect-strict-entity-size` has the body collected without a stream of its own.
          case HttpEntity.Strict(_, body) if body.length <= AnswerBytesMax =>
            finish(call, InferenceClient.resultOf(response.status, body))
          case entity =>
            entity
              .withSizeLimit(AnswerBytesMax)
              .toStrict(config.session.inferenceTimeoutNanos.nanos)
              .onComplete:
                case Success(strict) => finish(call, InferenceClient.resultOf(response.status, strict.data))
                case Failed(error)   => finish(call, Left(Failure.connection(error.toString)))

    private def finish(call: Call, result: => Either[Failure, stt.Inference]): Unit =
      forget(call)
      call.complete(result)

    private def forget(call: Call): Unit =
      val _ = outstanding.remove(call)
      val _ = byStream.remove(call.stream)

    private def retire(): Unit =
      val _ = live.compareAndSet(this, null)

    /** Takes no more requests, and is cut when the last of those it has must have had its answer. */
    private def wither(): Unit =
      if live.compareAndSet(this, null) then
        val _ = system.scheduler.scheduleOnce(config.session.inferenceTimeoutNanos.nanos)(killSwitch.shutdown())

    /** An abandoned request keeps its stream, if it has one, until the server answers. */
    private def onAbandoned(call: Call): Unit =
      if call.stream == 0 then forget(call)
      else if abandoned.incrementAndGet() == AbandonedMax then wither()

private object InferenceConnection:
  /** More than the sessions of a process: each has one request at most. */
  private val RequestsQueuedMax = 16 * 1024
  private val AnswerBytesMax = 64 * 1024
  private val AbandonedMax = 64
  private val ReconnectDelay = 100.millis
