package stt

import java.util.concurrent.{ConcurrentHashMap, TimeoutException}
import java.util.concurrent.atomic.AtomicInteger

import scala.concurrent.{ExecutionContext, Future, Promise}
import scala.jdk.CollectionConverters.*
import scala.util.control.NonFatal

import org.apache.pekko.actor.typed.ActorSystem
import org.apache.pekko.http.scaladsl.Http
import org.apache.pekko.http.scaladsl.model.*
import org.apache.pekko.http.scaladsl.model.headers.RawHeader
import org.apache.pekko.stream.scaladsl.{Keep, Sink, Source}
import org.apache.pekko.stream.{BoundedSourceQueue, QueueOfferResult, StreamTcpException}
import org.apache.pekko.util.ByteString

/** Sends batches to the inference server over a fixed set of HTTP/2 connections, in turn. */
final class InferenceClient(config: Config)(using system: ActorSystem[?]):
  import InferenceClient.*
  import system.executionContext

  private val connections = Vector.fill(config.inferenceConnections)(InferenceConnection(config))
  private val turn = AtomicInteger()
  private val template = HttpRequest(
    HttpMethods.POST,
    config.inferenceUrl.withPath(config.inferenceUrl.path ?/ "infer"),
    List(RawHeader("x-cpu-passes", config.cpuPasses.toString)),
  )

  /** Sends one batch. The future never fails. */
  def infer(pcm: ByteString): Future[Either[Failure, Inference]] =
    val request = template.withEntity(HttpEntity(ContentTypes.`application/octet-stream`, pcm))
    val connection = connections(Math.floorMod(turn.getAndIncrement(), connections.length))
    connection
      .send(request)
      .flatMap(judge)
      .recover:
        case _: TimeoutException =>
          Left(Failure(FailureKind.Timeout, s"no answer within ${config.inferenceTimeout.toMillis} ms"))
        case NonFatal(error) => Left(Failure(FailureKind.ConnectionReset, s"inference connection: ${error.getMessage}"))

  private def judge(response: HttpResponse): Future[Either[Failure, Inference]] =
    if response.status == StatusCodes.OK then
      val body = response.entity.withSizeLimit(AnswerBytesMax).toStrict(config.inferenceTimeout)
      body.map(entity => Messages.parseInference(entity.data.utf8String))
    else
      val _ = response.discardEntityBytes()
      Future.successful(Left(Failure.ofStatus(response.status.intValue)))

object InferenceClient:
  private val AnswerBytesMax = 64L * 1024

/** A place for one HTTP/2 connection, which is made on first use and made anew when lost.
  *
  * Pekko HTTP's managed connection (`managedPersistentHttp2WithPriorKnowledge`) would reconnect by itself, but it
  * answers the requests of a lost connection with a 502 of its own, which cannot be told from the server's.
  */
private final class InferenceConnection(config: Config)(using system: ActorSystem[?]):
  import InferenceConnection.*
  import system.executionContext

  private var live = Option.empty[Live]

  def send(request: HttpRequest): Future[HttpResponse] =
    val call = Call()
    val tagged = request.addAttribute(CallKey, call)
    // A connection that has just ended has not taken the request, which may go over a new one then.
    if !offer(call, tagged) && !offer(call, tagged) then
      val _ = call.fail(StreamTcpException("not connected"))
    call.response

  private def offer(call: Call, request: HttpRequest): Boolean =
    val connection = current()
    val isTaken = connection.offer(call, request)
    if isTaken then armTimeout(call, connection) else retire(connection)
    isTaken

  /** Pekko HTTP cannot cancel a request, and one that is never answered keeps its stream. So a connection with a
    * request that timed out takes no new ones: it ends when its others are answered.
    */
  private def armTimeout(call: Call, connection: Live): Unit =
    val timer = system.classicSystem.scheduler.scheduleOnce(config.inferenceTimeout):
      if call.fail(TimeoutException()) then retire(connection)
    call.response.onComplete(_ => timer.cancel())

  private def current(): Live = synchronized:
    live.getOrElse:
      val made = connect()
      live = Some(made)
      made

  private def retire(connection: Live): Unit = synchronized:
    if live.contains(connection) then
      live = None
      connection.queue.complete()

  private def connect(): Live =
    val (queue, done) = Source
      .queue[HttpRequest](RequestsQueuedMax)
      // What timed out in the queue is not sent any more.
      .filterNot(request => request.attribute(CallKey).exists(_.response.isCompleted))
      .via(
        Http()
          .connectionTo(config.inferenceUrl.authority.host.address)
          .toPort(config.inferenceUrl.effectivePort)
          .http2WithPriorKnowledge()
      )
      .toMat(Sink.foreach(response => response.attribute(CallKey).foreach(_.succeed(response))))(Keep.both)
      .run()
    val connection = Live(queue)
    done.onComplete: end =>
      retire(connection)
      connection.failAll(end.failed.getOrElse(StreamTcpException("the server closed the connection")))
    connection

private object InferenceConnection:
  /** More than the sessions of a process: each has one request at most. */
  private val RequestsQueuedMax = 16 * 1024

  private val CallKey = AttributeKey[Call]("inference-call")

  /** A request on its way. Pekko HTTP hands it back with the response; responses come in any order. */
  private final class Call extends RequestResponseAssociation:
    private val promise = Promise[HttpResponse]()

    def response: Future[HttpResponse] = promise.future

    def succeed(response: HttpResponse): Boolean = promise.trySuccess(response)

    def fail(cause: Throwable): Boolean = promise.tryFailure(cause)

  /** A connection from its making to its end, with the requests that it has taken and not answered. */
  private final class Live(val queue: BoundedSourceQueue[HttpRequest]):
    private val outstanding = ConcurrentHashMap.newKeySet[Call]()

    def offer(call: Call, request: HttpRequest): Boolean =
      // Before it is in the queue, so that the end of the connection finds it.
      val _ = outstanding.add(call)
      call.response.onComplete(_ => outstanding.remove(call))(using ExecutionContext.parasitic)
      queue.offer(request) == QueueOfferResult.Enqueued

    def failAll(cause: Throwable): Unit = outstanding.asScala.foreach(_.fail(cause))
