package stt

import com.github.plokhotnyuk.jsoniter_scala.core.*
import stt.session.{AudioBuffer, Span}

/** What the inference server says about a batch: exactly these fields. */
final case class Inference(
    rms: Double,
    zeroCrossings: Long,
    checksum: Long,
    samples: Long,
    transcript: String,
    audioBytes: Long,
)

/** The `partial` message for an answered batch. */
final case class Partial(span: Span, inference: Inference, cpuPasses: Long, flushLatenessNanos: Long)

/** The `error` message for frames that will have no transcript. */
final case class ErrorMessage(
    failure: Failure,
    span: Span,
    nowNanos: Long,
    flushLatenessNanos: Long,
    inferenceElapsedNanos: Option[Long],
    inflightBatches: Int,
    bufferFrames: Int,
)

/** The JSON that crosses the WebSocket and the answer of the inference server, strict in what is accepted. */
object Messages:
  /** Whether `text` is exactly the start message, however it is spaced or escaped. */
  def isStart(text: Array[Byte]): Boolean =
    try readFromArray(text)(using startCodec) == "start"
    catch case _: JsonReaderException => false

  def parseInference(body: Array[Byte]): Either[Failure, Inference] =
    try Right(readFromArray(body)(using inferenceCodec))
    catch case error: JsonReaderException => Left(Failure.parse(error.getMessage))

  def render(partial: Partial): Array[Byte] = writeToArray(partial)(using partialCodec)

  def render(error: ErrorMessage): Array[Byte] = writeToArray(error)(using errorCodec)

  /** Reads an object each of whose `fields` names occurs exactly once; `read` reads the value of one. */
  private def readObject(in: JsonReader, fields: IndexedSeq[String])(read: Int => Unit): Unit =
    if !in.isNextToken('{') then in.decodeError("expected an object")
    var missing = (1 << fields.length) - 1
    var more = true
    while more do
      val length = in.readKeyAsCharBuf()
      val field = fields.indexWhere(in.isCharBufEqualsTo(length, _))
      if field < 0 then in.unexpectedKeyError(length)
      if (missing & (1 << field)) == 0 then in.duplicatedKeyError(length)
      missing &= ~(1 << field)
      read(field)
      more = in.isNextToken(',')
    if !in.isCurrentToken('}') then in.objectEndOrCommaError()
    if missing != 0 then in.decodeError(s"missing field ${fields(Integer.numberOfTrailingZeros(missing))}")

  private def readCount(in: JsonReader, max: Long): Long =
    val value = in.readLong()
    if value < 0 || value > max then in.decodeError("out of range")
    value

  private def readText(in: JsonReader): String = in.readString(null) match
    case null => in.decodeError("expected a string")
    case text => text

  private val startFields = Vector("type")

  private val startCodec: JsonValueCodec[String] = new ReadOnlyCodec[String]:
    def decodeValue(in: JsonReader, default: String): String =
      var kind = ""
      readObject(in, startFields)(_ => kind = readText(in))
      kind

  private val inferenceFields = Vector("rms", "zero_crossings", "checksum", "samples", "transcript", "audio_bytes")
  private val u32Max = 0xffffffffL

  private val inferenceCodec: JsonValueCodec[Inference] = new ReadOnlyCodec[Inference]:
    def decodeValue(in: JsonReader, default: Inference): Inference =
      var rms = 0.0
      var transcript = ""
      var zeroCrossings, checksum, samples, audioBytes = 0L
      readObject(in, inferenceFields):
        case 0 => rms = in.readDouble()
        case 1 => zeroCrossings = readCount(in, Long.MaxValue)
        case 2 => checksum = readCount(in, u32Max)
        case 3 => samples = readCount(in, Long.MaxValue)
        case 4 => transcript = readText(in)
        case _ => audioBytes = readCount(in, Long.MaxValue)
      Inference(rms, zeroCrossings, checksum, samples, transcript, audioBytes)

  private val partialCodec: JsonValueCodec[Partial] = new WriteOnlyCodec[Partial]:
    def encodeValue(partial: Partial, out: JsonWriter): Unit =
      val inference = partial.inference
      out.writeObjectStart()
      out.text("type", "partial")
      out.span(partial.span)
      out.number("rms", inference.rms)
      out.count("zero_crossings", inference.zeroCrossings)
      out.count("checksum", inference.checksum)
      out.count("samples", inference.samples)
      out.text("transcript", inference.transcript)
      out.count("audio_bytes", inference.audioBytes)
      out.count("cpu_passes", partial.cpuPasses)
      out.number("flush_lateness_ms", millis(partial.flushLatenessNanos))
      out.writeObjectEnd()

  private val errorCodec: JsonValueCodec[ErrorMessage] = new WriteOnlyCodec[ErrorMessage]:
    def encodeValue(error: ErrorMessage, out: JsonWriter): Unit =
      val kind = error.failure.kind
      out.writeObjectStart()
      out.text("type", "error")
      out.text("stage", kind.stage)
      out.text("kind", kind.kind)
      out.text("message", error.failure.message)
      out.span(error.span)
      out.count("audio_bytes", error.span.frames * AudioBuffer.FrameBytes)
      out.number("oldest_age_ms", millis(error.nowNanos - error.span.oldestAtNanos))
      out.number("newest_age_ms", millis(error.nowNanos - error.span.newestAtNanos))
      out.number("flush_lateness_ms", millis(error.flushLatenessNanos))
      out.writeNonEscapedAsciiKey("inference_elapsed_ms")
      error.inferenceElapsedNanos.fold(out.writeNull())(nanos => out.writeVal(millis(nanos)))
      out.count("inflight_gateway_batches", error.inflightBatches)
      out.count("gateway_buffer_frames", error.bufferFrames)
      out.writeNonEscapedAsciiKey("inference_status")
      error.failure.status.fold(out.writeNull())(out.writeVal(_))
      out.writeNonEscapedAsciiKey("retryable")
      out.writeVal(kind.retryable)
      out.writeObjectEnd()

  extension (out: JsonWriter)
    private def text(key: String, value: String): Unit =
      out.writeNonEscapedAsciiKey(key)
      out.writeVal(value)

    private def count(key: String, value: Long): Unit =
      out.writeNonEscapedAsciiKey(key)
      out.writeVal(value)

    private def number(key: String, value: Double): Unit =
      out.writeNonEscapedAsciiKey(key)
      out.writeVal(value)

    private def span(span: Span): Unit =
      out.count("oldest_frame_seq", span.oldestSeq)
      out.count("newest_frame_seq", span.newestSeq)
      out.count("frames", span.frames)

  private def millis(nanos: Long): Double = math.max(0L, nanos) / 1e6

  /** jsoniter's codecs go both ways; each of these is used one way only. */
  private abstract class ReadOnlyCodec[A >: Null <: AnyRef] extends JsonValueCodec[A]:
    def encodeValue(value: A, out: JsonWriter): Unit = throw UnsupportedOperationException("read only")
    def nullValue: A = null

  private abstract class WriteOnlyCodec[A >: Null <: AnyRef] extends JsonValueCodec[A]:
    def decodeValue(in: JsonReader, default: A): A = throw UnsupportedOperationException("write only")
    def nullValue: A = null
