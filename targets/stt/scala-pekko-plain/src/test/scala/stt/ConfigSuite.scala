package stt

import scala.concurrent.duration.*

import org.apache.pekko.http.scaladsl.model.Uri

class ConfigSuite extends munit.FunSuite:
  private def read(variables: (String, String)*): Config =
    Config.read(variables.toMap.get).fold(line => fail(line), identity)

  test("the defaults are those of the contract"):
    val expected = Config(
      port = 3000,
      workerThreads = Runtime.getRuntime.availableProcessors,
      inferenceUrl = Uri("http://127.0.0.1:9000"),
      inferenceConnections = Runtime.getRuntime.availableProcessors,
      inferenceTimeout = 5.seconds,
      flushInterval = 1.second,
      flushPhaseJitter = 1.second,
      cpuPasses = 4,
      maxSessions = 0,
      maxBufferFrames = 500,
      overflowPolicy = OverflowPolicy.DropOldest,
      maxInflightJobs = 0,
      outboxMessages = 4,
      startTimeout = 10.seconds,
      drainTimeout = 5.seconds,
      authToken = None,
    )
    assertEquals(read(), expected)

  test("each worker has its connections"):
    assertEquals(read("WORKER_THREADS" -> "3", "INFERENCE_HTTP_CLIENTS" -> "2").inferenceConnections, 6)

  test("a bad value is named in one line"):
    val bad = List(
      "PORT" -> "0",
      "PORT" -> "65536",
      "PORT" -> "+80",
      "WORKER_THREADS" -> "0",
      "WORKER_THREADS" -> "",
      "INFERENCE_URL" -> "127.0.0.1:9000",
      "INFERENCE_URL" -> "not a url",
      "INFERENCE_URL" -> "https://example.org",
      "INFERENCE_URL" -> "http://example.org?x",
      "INFERENCE_HTTP_CLIENTS" -> "0",
      "INFERENCE_TIMEOUT_MS" -> "-1",
      "FLUSH_INTERVAL_MS" -> "0",
      "FLUSH_PHASE_JITTER_MS" -> "1.5",
      "CPU_PASSES" -> "4294967296",
      "MAX_SESSIONS" -> "x\ny",
      "MAX_BUFFER_FRAMES" -> "0",
      "OVERFLOW_POLICY" -> "Drop_Oldest",
      "MAX_INFLIGHT_JOBS" -> "all",
      "OUTBOX_MESSAGES" -> "0",
      "START_TIMEOUT_MS" -> "0",
      "DRAIN_TIMEOUT_MS" -> "99999999999999",
    )
    for (name, value) <- bad do
      Config.read(Map(name -> value).get) match
        case Left(line) =>
          assert(line.startsWith(s"$name="), line)
          assertEquals(line.linesIterator.length, 1, line)
        case Right(_) => fail(s"$name=$value was taken")
