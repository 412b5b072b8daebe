package stt.inference

import java.util.concurrent.atomic.{AtomicBoolean, AtomicInteger}

import org.apache.pekko.actor.ActorSystem
import org.apache.pekko.http.scaladsl.model.*
import org.apache.pekko.http.scaladsl.model.headers.RawHeader
import org.apache.pekko.util.ByteString
import stt.{Config, Failure, Inference, Messages}

/** Where batches go. */
trait InferenceService:
  /** Sends one batch. `onResult` is called at most once, from another thread, and not after the call was abandoned. */
  def infer(pcm: ByteString)(onResult: Either[Failure, Inference] => Unit): InferenceClient.Call

/** Sends batches to the inference server over a fixed set of HTTP/2 connections, in turn. */
final class InferenceClient(config: Config)(using system: ActorSystem) extends InferenceService:
  private val connections = Array.fill(config.inferenceConnections)(InferenceConnection(config))
  private val turn = AtomicInteger()

  private val template = HttpRequest(
    HttpMethods.POST,
    Uri(config.inferenceUrl.infer),
    List(RawHeader("x-cpu-passes", config.session.cpuPasses.toString)),
  )

  def infer(pcm: ByteString)(onResult: Either[Failure, Inference] => Unit): InferenceClient.Call =
    val call = InferenceClient.Call(onResult)
    val entity = HttpEntity.Strict(ContentTypes.`application/octet-stream`, pcm)
    val request = template.withEntity(entity).addAttribute(InferenceClient.CallKey, call)
    connections(Math.floorMod(turn.getAndIncrement(), connections.length)).send(call, request)
    call

object InferenceClient:
  /** A request on its way. Pekko hands it back with its response, and responses come in any order. */
  final class Call(onResult: Either[Failure, Inference] => Unit) extends RequestResponseAssociation:
    private val ended = AtomicBoolean()

    /** Its HTTP/2 stream, when it has one. */
    @volatile private[inference] var stream = 0
    @volatile private[inference] var onAbandoned: () => Unit = () => ()

    private[inference] def hasEnded: Boolean = ended.get

    private[stt] def complete(result: => Either[Failure, Inference]): Unit =
      if ended.compareAndSet(false, true) then onResult(result)

    /** Nobody waits for it any more. */
    def abandon(): Unit = if ended.compareAndSet(false, true) then onAbandoned()

  private[inference] val CallKey = AttributeKey[Call]("inference-call")

  /** Judges a response whose body is there. */
  private[inference] def resultOf(status: StatusCode, body: ByteString): Either[Failure, Inference] =
    if status == StatusCodes.OK then Messages.parseInference(body.toArrayUnsafe())
    else Left(Failure.status(status.intValue))
