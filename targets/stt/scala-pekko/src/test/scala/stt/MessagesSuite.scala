package stt

import stt.session.Span

class MessagesSuite extends munit.FunSuite:
  for vector <- Vectors.cases("start") do
    test(s"start: ${vector("id").text}"):
      assertEquals(Messages.isStart(vector("text").text.getBytes("UTF-8")), vector("ok").flag)

  for vector <- Vectors.cases("inference_answers") do
    test(s"inference answer: ${vector("id").text}"):
      val parsed = Messages.parseInference(vector("body").text.getBytes("UTF-8"))
      assertEquals(parsed.isRight, vector("ok").flag)
      parsed.left.foreach: failure =>
        assertEquals(failure.kind.kind, vector("kind").text)
        assert(failure.message.nonEmpty && failure.message.linesIterator.length == 1, failure.message)

  for vector <- Vectors.cases("inference_failures") do
    test(s"inference failure: ${vector("id").text}"):
      val failure =
        if !vector("status").isNull then Failure.status(vector("status").long.toInt)
        else if vector("transport").text == "timeout" then Failure.timeout
        else Failure.connection("reset")
      assertEquals(failure.kind.kind, vector("kind").text)
      assertEquals(failure.kind.stage, vector("stage").text)
      assertEquals(failure.kind.retryable, vector("retryable").flag)

  for vector <- Vectors.cases("partials") do
    test(s"partial: ${vector("id").text}"):
      val (answer, batch, config) = (vector("inference"), vector("batch"), vector("config"))
      val inference = Inference(
        answer("rms").number.toDouble,
        answer("zero_crossings").long,
        answer("checksum").long,
        answer("samples").long,
        answer("transcript").text,
        answer("audio_bytes").long,
      )
      val span = Span(batch("oldest_frame_seq").long, batch("newest_frame_seq").long, 0, 0)
      val partial = Partial(span, inference, config("cpu_passes").long, nanos(batch("flush_lateness_ms")))
      assertEquals(Json.parse(Messages.render(partial)), vector("expect"))

  for vector <- Vectors.cases("errors") do
    test(s"error: ${vector("id").text}"):
      val input = vector("input")
      val batch = input("batch")
      val kind = FailureKind.values.find(_.kind == input("kind").text).get
      val status = Option.when(!input("inference_status").isNull)(input("inference_status").long.toInt)
      val now = 1_000_000_000_000L
      val message = ErrorMessage(
        Failure(kind, input("message").text, status),
        Span(
          batch("oldest_frame_seq").long,
          batch("newest_frame_seq").long,
          now - nanos(batch("oldest_age_ms")),
          now - nanos(batch("newest_age_ms")),
        ),
        now,
        nanos(batch("flush_lateness_ms")),
        Option.when(!input("inference_elapsed_ms").isNull)(nanos(input("inference_elapsed_ms"))),
        input("inflight_gateway_batches").long.toInt,
        input("gateway_buffer_frames").long.toInt,
      )
      assertEquals(Json.parse(Messages.render(message)), vector("expect"))

  private def nanos(millis: Json): Long = (millis.number * Fixtures.Millis).toLongExact
