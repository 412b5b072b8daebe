package stt

class ConfigSuite extends munit.FunSuite:
  test("the defaults are those of the contract"):
    val config = Config.read(_ => None).toOption.get
    assertEquals(config.port, 3000)
    assertEquals(config.inferenceUrl, InferenceUrl("127.0.0.1", 9000, "http://127.0.0.1:9000/infer"))
    assertEquals(config.session, Fixtures.settings)
    assertEquals(config.inferenceConnections, config.workerThreads)
    assertEquals(config.flushPhaseJitterNanos, 1000 * Fixtures.Millis)
    assertEquals((config.sessionsMax, config.jobsMax, config.authToken, config.readPaceMs), (0, 0, None, 0))

  test("a bad value is named in one line"):
    val bad = List(
      "PORT" -> "0",
      "PORT" -> "65536",
      "PORT" -> "+80",
      "WORKER_THREADS" -> "0",
      "WORKER_THREADS" -> "",
      "INFERENCE_URL" -> "127.0.0.1:9000",
      "INFERENCE_URL" -> "https://example.org",
      "INFERENCE_HTTP_CLIENTS" -> "0",
      "INFERENCE_TIMEOUT_MS" -> "-1",
      "FLUSH_INTERVAL_MS" -> "0",
      "FLUSH_PHASE_JITTER_MS" -> "1.5",
      "CPU_PASSES" -> "4294967296",
      "MAX_SESSIONS" -> "-1",
      "MAX_SESSIONS" -> "x\ny",
      "MAX_BUFFER_FRAMES" -> "0",
      "OVERFLOW_POLICY" -> "Drop_Oldest",
      "MAX_INFLIGHT_JOBS" -> "all",
      "OUTBOX_MESSAGES" -> "0",
      "START_TIMEOUT_MS" -> "0",
      "DRAIN_TIMEOUT_MS" -> "99999999999999",
      "READ_PACE_MS" -> "251",
    )
    for (name, value) <- bad do
      Config.read(asked => Option.when(asked == name)(value)) match
        case Left(Config.Bad(line)) =>
          assert(line.startsWith(s"$name="), line)
          assertEquals(line.linesIterator.length, 1, line)
        case Right(_) => fail(s"$name=$value was taken")
