package stt

import java.net.URI
import java.util.concurrent.TimeUnit.MILLISECONDS

import scala.util.Try

import stt.session.{OverflowPolicy, Settings}

/** Everything that can be set. A limit of 0 is none. */
final case class Config(
    port: Int,
    workerThreads: Int,
    inferenceUrl: InferenceUrl,
    inferenceConnections: Int,
    flushPhaseJitterNanos: Long,
    sessionsMax: Int,
    jobsMax: Int,
    drainTimeoutNanos: Long,
    authToken: Option[String],
    readPaceMs: Int,
    session: Settings,
)

/** Where the inference server is: `http://host[:port][/path]`, and the URL of requests to it. */
final case class InferenceUrl(host: String, port: Int, infer: String)

object Config:
  /** A variable whose value cannot be used, in one line that names it. */
  final case class Bad(line: String)

  /** Ten days: no duration here is sensibly longer, and sums of such durations stay far from overflow. */
  private val MillisMax = 10L * 24 * 3600 * 1000

  /** A violation must be answered within 500 ms, and a read may come a whole pace after it. */
  private val ReadPaceMsMax = 250

  def read(environment: String => Option[String]): Either[Bad, Config] =
    val variables = Variables(environment)
    import variables.*
    val cores = Runtime.getRuntime.availableProcessors
    for
      port <- number("PORT", 3000, 1, 65535)
      workerThreads <- number("WORKER_THREADS", cores, 1, 1024)
      inferenceUrl <- parsed("INFERENCE_URL", "http://127.0.0.1:9000", "give http://host:port", inferenceUrlOf)
      connections <- number("INFERENCE_HTTP_CLIENTS", 1, 1, 1024)
      inferenceTimeout <- nanos("INFERENCE_TIMEOUT_MS", 5000, 1)
      flushInterval <- nanos("FLUSH_INTERVAL_MS", 1000, 1)
      jitter <- nanos("FLUSH_PHASE_JITTER_MS", 1000, 0)
      cpuPasses <- number("CPU_PASSES", 4, 1, 0xffffffffL)
      sessionsMax <- number("MAX_SESSIONS", 0, 0, Int.MaxValue)
      bufferFramesMax <- number("MAX_BUFFER_FRAMES", 500, 1, 1_000_000)
      policy <- parsed("OVERFLOW_POLICY", "drop_oldest", "give drop_oldest, drop_newest or close", policies.get)
      jobsMax <- number("MAX_INFLIGHT_JOBS", 0, 0, Int.MaxValue)
      outboxMessagesMax <- number("OUTBOX_MESSAGES", 4, 1, 1_000_000)
      startTimeout <- nanos("START_TIMEOUT_MS", 10_000, 1)
      drainTimeout <- nanos("DRAIN_TIMEOUT_MS", 5000, 0)
      authToken <- parsed("AUTH_TOKEN", "", "", Some(_))
      readPaceMs <- number("READ_PACE_MS", 0, 0, ReadPaceMsMax)
    yield Config(
      port.toInt,
      workerThreads.toInt,
      inferenceUrl,
      // The contract counts them for each worker, and all of them are in this one process.
      connections.toInt * workerThreads.toInt,
      jitter,
      sessionsMax.toInt,
      jobsMax.toInt,
      drainTimeout,
      Option.when(authToken.nonEmpty)(authToken),
      readPaceMs.toInt,
      Settings(
        flushInterval,
        startTimeout,
        inferenceTimeout,
        bufferFramesMax.toInt,
        policy,
        outboxMessagesMax.toInt,
        cpuPasses,
      ),
    )

  private val policies = Map(
    "drop_oldest" -> OverflowPolicy.DropOldest,
    "drop_newest" -> OverflowPolicy.DropNewest,
    "close" -> OverflowPolicy.Close,
  )

  private final class Variables(environment: String => Option[String]):
    def parsed[A](name: String, default: String, wanted: String, parse: String => Option[A]): Either[Bad, A] =
      val text = environment(name).getOrElse(default)
      parse(text).toRight(Bad(s"$name=${quoted(text)}: $wanted"))

    def number(name: String, default: Long, min: Long, max: Long): Either[Bad, Long] =
      parsed(
        name,
        default.toString,
        s"give a whole number from $min to $max",
        text =>
          for
            digits <- Option.when(text.forall(c => c >= '0' && c <= '9'))(text)
            value <- digits.toLongOption
            if value >= min && value <= max
          yield value,
      )

    def nanos(name: String, default: Long, min: Long): Either[Bad, Long] =
      number(name, default, min, MillisMax).map(MILLISECONDS.toNanos)

  /** On one line, whatever the value is. */
  private def quoted(text: String): String =
    text.map(c => if c < ' ' || c == 0x7f then '?' else c).mkString("\"", "", "\"")

  private def inferenceUrlOf(text: String): Option[InferenceUrl] =
    for
      uri <- Try(URI(text)).toOption
      if uri.getScheme == "http" && uri.getRawQuery == null && uri.getRawFragment == null && uri.getRawUserInfo == null
      host <- Option(uri.getHost).filter(_.nonEmpty)
      port = if uri.getPort == -1 then 80 else uri.getPort
      if port >= 1 && port <= 65535
    yield
      val base = text.take(text.lastIndexWhere(_ != '/') + 1)
      // An IPv6 address has brackets in a URL and none as a host.
      InferenceUrl(host.stripPrefix("[").stripSuffix("]"), port, s"$base/infer")
