package stt

class MetricsSuite extends munit.FunSuite:
  test("a limit is exact, and 0 is none"):
    val two = Limit(2)
    assertEquals(List.fill(3)(two.acquire()), List(true, true, false))
    two.release()
    assert(two.acquire())
    assertEquals(two.inUse, 2)
    assertEquals(List.fill(3)(Limit(0).acquire()), List(true, true, true))

  test("every series is there from the start, and a family is declared once"):
    val metrics = Metrics(0, 0)
    metrics.bufferFrames.observe(50)
    metrics.bufferFrames.observe(501)
    metrics.inferenceSeconds.observe(0.25)
    metrics.failed(FailureKind.Overflow)
    val lines = metrics.render.linesIterator.toVector
    val expected = List(
      """stt_buffer_frames_bucket{le="20"} 0""",
      """stt_buffer_frames_bucket{le="50"} 1""",
      """stt_buffer_frames_bucket{le="500"} 1""",
      """stt_buffer_frames_bucket{le="+Inf"} 2""",
      "stt_buffer_frames_sum 551.0",
      "stt_buffer_frames_count 2",
      """stt_inference_seconds_bucket{le="0.3"} 1""",
      """stt_errors_total{stage="input_buffer",kind="overflow"} 1""",
      """stt_errors_total{stage="inference_request",kind="timeout"} 0""",
      """stt_ticks_deferred_total{reason="outbox"} 0""",
    )
    for line <- expected do assert(lines.contains(line), line)
    assertEquals(lines.count(_.startsWith("# TYPE")), 12)
