package stt

import io.circe.Decoder
import io.circe.derivation.{Configuration, ConfiguredDecoder, ConfiguredEncoder}
import io.circe.parser.decode
import io.circe.syntax.*

/** What the inference server says about a batch: exactly these fields. */
final case class Inference(
    rms: Double,
    zeroCrossings: Long,
    checksum: Long,
    samples: Long,
    transcript: String,
    audioBytes: Long,
)

/** One row of the contract's error table: `stage`, `kind` and `retryable` of an `error` follow from it. */
enum FailureKind(val stage: String, val kind: String, val retryable: Boolean):
  case Timeout extends FailureKind("inference_request", "timeout", true)
  case ConnectionReset extends FailureKind("inference_request", "connection_reset", true)
  case Http429 extends FailureKind("inference_request", "http_429", true)
  case Http5xx extends FailureKind("inference_request", "http_5xx", true)
  case Http4xx extends FailureKind("inference_request", "http_4xx", false)
  case ParseError extends FailureKind("inference_response_parse", "parse_error", false)
  case Overflow extends FailureKind("input_buffer", "overflow", false)

/** Why a range of frames has no transcript. `status` is that of the answer, where there was one. */
final case class Failure(kind: FailureKind, message: String, status: Option[Int] = None)

object Failure:
  /** The failure that an HTTP status other than 200 stands for. */
  def ofStatus(status: Int): Failure =
    val kind = status match
      case 429                       => FailureKind.Http429
      case s if s >= 500 && s <= 599 => FailureKind.Http5xx
      case s if s >= 400 && s <= 499 => FailureKind.Http4xx
      // The contract names no other status; whatever it is, it is not the strict answer.
      case _ => FailureKind.ParseError
    Failure(kind, s"the inference server answered $status", Some(status))

/** What an `error` says beside its failure and its frames. */
final case class Circumstances(
    nowNanos: Long,
    latenessNanos: Long,
    elapsedNanos: Option[Long],
    inflightBatches: Int,
    bufferFrames: Int,
)

/** The JSON that crosses the WebSocket, and the answer of the inference server. */
object Messages:
  /** An unknown or missing field is an error; a repeated one cannot be seen. */
  private given Configuration = Configuration.default.withSnakeCaseMemberNames.withStrictDecoding

  /** Whether `text` is exactly the start message, however it is spaced or escaped. */
  def isStart(text: String): Boolean = decode[Start](text).exists(_.`type` == "start")

  def parseInference(body: String): Either[Failure, Inference] =
    decode[Inference](body).left
      .map(error => parseError(error.getMessage.linesIterator.next()))
      .filterOrElse(hasRanges, parseError("a number is out of its range"))

  /** The `partial` for an answered batch. */
  def partial(batch: Batch, answer: Inference, cpuPasses: Long): String =
    Partial(
      "partial",
      batch.span.oldestSeq,
      batch.span.newestSeq,
      batch.span.frames,
      answer.rms,
      answer.zeroCrossings,
      answer.checksum,
      answer.samples,
      answer.transcript,
      answer.audioBytes,
      cpuPasses,
      millis(batch.latenessNanos),
    ).asJson.noSpaces

  /** The `error` for frames that will have no transcript. */
  def error(span: Span, failure: Failure, around: Circumstances): String =
    ErrorMessage(
      "error",
      failure.kind.stage,
      failure.kind.kind,
      failure.message,
      span.oldestSeq,
      span.newestSeq,
      span.frames,
      span.frames * Session.FrameBytes,
      millis(around.nowNanos - span.oldestAtNanos),
      millis(around.nowNanos - span.newestAtNanos),
      millis(around.latenessNanos),
      around.elapsedNanos.map(millis),
      around.inflightBatches,
      around.bufferFrames,
      failure.status,
      failure.kind.retryable,
    ).asJson.noSpaces

  private def parseError(cause: String) = Failure(FailureKind.ParseError, s"the answer: $cause", Some(200))

  private def hasRanges(answer: Inference): Boolean =
    val counts = List(answer.zeroCrossings, answer.checksum, answer.samples, answer.audioBytes)
    counts.forall(_ >= 0) && answer.checksum <= 0xffffffffL && answer.rms.isFinite

  private def millis(nanos: Long): Double = nanos / 1e6

  // circe's own decoders take a number in quotes too.
  private given Decoder[Long] = Decoder.decodeLong.validate(_.value.isNumber, "expected a number")
  private given Decoder[Double] = Decoder.decodeDouble.validate(_.value.isNumber, "expected a number")
  private given ConfiguredDecoder[Inference] = ConfiguredDecoder.derived

  private final case class Start(`type`: String) derives ConfiguredDecoder

  private final case class Partial(
      `type`: String,
      oldestFrameSeq: Long,
      newestFrameSeq: Long,
      frames: Long,
      rms: Double,
      zeroCrossings: Long,
      checksum: Long,
      samples: Long,
      transcript: String,
      audioBytes: Long,
      cpuPasses: Long,
      flushLatenessMs: Double,
  ) derives ConfiguredEncoder

  private final case class ErrorMessage(
      `type`: String,
      stage: String,
      kind: String,
      message: String,
      oldestFrameSeq: Long,
      newestFrameSeq: Long,
      frames: Long,
      audioBytes: Long,
      oldestAgeMs: Double,
      newestAgeMs: Double,
      flushLatenessMs: Double,
      inferenceElapsedMs: Option[Double],
      inflightGatewayBatches: Int,
      gatewayBufferFrames: Int,
      inferenceStatus: Option[Int],
      retryable: Boolean,
  ) derives ConfiguredEncoder
