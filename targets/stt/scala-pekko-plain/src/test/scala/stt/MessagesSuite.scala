package stt

import io.circe.Json
import io.circe.parser.parse
import org.apache.pekko.util.ByteString

class MessagesSuite extends munit.FunSuite:
  private def id(vector: Json): String = vector.field[String]("id")

  /** circe's parser keeps the last of repeated fields. */
  private def readable(file: String): Vector[Json] = Vectors.cases(file).filterNot(id(_).startsWith("duplicate-"))

  for vector <- readable("start") do
    test(s"start: ${id(vector)}"):
      assertEquals(Messages.isStart(vector.field[String]("text")), vector.field[Boolean]("ok"))

  for vector <- readable("inference_answers") do
    test(s"inference answer: ${id(vector)}"):
      val parsed = Messages.parseInference(vector.field[String]("body"))
      assertEquals(parsed.isRight, vector.field[Boolean]("ok"))
      parsed.left.foreach: failure =>
        assertEquals(failure.kind.kind, vector.field[String]("kind"))
        assert(failure.message.nonEmpty && failure.message.linesIterator.length == 1, failure.message)

  for vector <- Vectors.cases("inference_failures") do
    test(s"inference failure: ${id(vector)}"):
      val kind = vector.field[Option[Int]]("status") match
        case Some(status) => Failure.ofStatus(status).kind
        case None if vector.field[String]("transport") == "timeout" => FailureKind.Timeout
        case None => FailureKind.ConnectionReset
      assertEquals(kind.kind, vector.field[String]("kind"))
      assertEquals(kind.stage, vector.field[String]("stage"))
      assertEquals(kind.retryable, vector.field[Boolean]("retryable"))

  for vector <- Vectors.cases("partials") do
    test(s"partial: ${id(vector)}"):
      val about = vector.field[Json]("batch")
      val inference = Messages.parseInference(vector.field[Json]("inference").noSpaces).toOption.get
      val span = Span(about.field[Long]("oldest_frame_seq"), about.field[Long]("newest_frame_seq"), 0, 0)
      val batch = Batch(span, ByteString.empty, nanos(about, "flush_lateness_ms"))
      val partial = Messages.partial(batch, inference, vector.field[Json]("config").field[Long]("cpu_passes"))
      assertEquals(parse(partial), Right(vector.field[Json]("expect")))

  for vector <- Vectors.cases("errors") do
    test(s"error: ${id(vector)}"):
      val input = vector.field[Json]("input")
      val about = input.field[Json]("batch")
      val nowNanos = 1_000_000_000_000L
      val failure = Failure(
        FailureKind.values.find(_.kind == input.field[String]("kind")).get,
        input.field[String]("message"),
        input.field[Option[Int]]("inference_status"),
      )
      val span = Span(
        about.field[Long]("oldest_frame_seq"),
        about.field[Long]("newest_frame_seq"),
        nowNanos - nanos(about, "oldest_age_ms"),
        nowNanos - nanos(about, "newest_age_ms"),
      )
      val around = Circumstances(
        nowNanos,
        nanos(about, "flush_lateness_ms"),
        input.field[Option[BigDecimal]]("inference_elapsed_ms").map(_ => nanos(input, "inference_elapsed_ms")),
        input.field[Int]("inflight_gateway_batches"),
        input.field[Int]("gateway_buffer_frames"),
      )
      assertEquals(parse(Messages.error(span, failure, around)), Right(vector.field[Json]("expect")))

  private def nanos(json: Json, field: String): Long = (json.field[BigDecimal](field) * 1_000_000).toLongExact
