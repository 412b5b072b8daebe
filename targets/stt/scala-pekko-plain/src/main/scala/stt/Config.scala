package stt

import scala.concurrent.duration.*
import scala.util.Try

import org.apache.pekko.http.scaladsl.model.Uri

enum OverflowPolicy:
  case DropOldest, DropNewest, Close

/** Everything that can be set. A limit of 0 is none. */
final case class Config(
    port: Int,
    workerThreads: Int,
    inferenceUrl: Uri,
    inferenceConnections: Int,
    inferenceTimeout: FiniteDuration,
    flushInterval: FiniteDuration,
    flushPhaseJitter: FiniteDuration,
    cpuPasses: Long,
    maxSessions: Int,
    maxBufferFrames: Int,
    overflowPolicy: OverflowPolicy,
    maxInflightJobs: Int,
    outboxMessages: Int,
    startTimeout: FiniteDuration,
    drainTimeout: FiniteDuration,
    authToken: Option[String],
)

object Config:
  /** Ten days: no duration here is sensibly longer, and Pekko's scheduler takes no more than 248. */
  private val MillisMax = 10L * 24 * 3600 * 1000

  private val policies = Map(
    "drop_oldest" -> OverflowPolicy.DropOldest,
    "drop_newest" -> OverflowPolicy.DropNewest,
    "close" -> OverflowPolicy.Close,
  )

  /** Reads the environment, or names the variable whose value cannot be used. */
  def read(environment: String => Option[String]): Either[String, Config] =
    val variables = Variables(environment)
    import variables.*
    val cores = Runtime.getRuntime.availableProcessors
    for
      port <- int("PORT", 3000, 1, 65535)
      workerThreads <- int("WORKER_THREADS", cores, 1, 1024)
      inferenceUrl <- parsed("INFERENCE_URL", "http://127.0.0.1:9000", "give http://host:port", baseUrl)
      connections <- int("INFERENCE_HTTP_CLIENTS", 1, 1, 1024)
      inferenceTimeout <- millis("INFERENCE_TIMEOUT_MS", 5000, 1)
      flushInterval <- millis("FLUSH_INTERVAL_MS", 1000, 1)
      jitter <- millis("FLUSH_PHASE_JITTER_MS", 1000, 0)
      cpuPasses <- number("CPU_PASSES", 4, 1, 0xffffffffL)
      maxSessions <- int("MAX_SESSIONS", 0, 0, Int.MaxValue)
      maxBufferFrames <- int("MAX_BUFFER_FRAMES", 500, 1, 1_000_000)
      policy <- parsed("OVERFLOW_POLICY", "drop_oldest", "give drop_oldest, drop_newest or close", policies.get)
      maxInflightJobs <- int("MAX_INFLIGHT_JOBS", 0, 0, Int.MaxValue)
      outboxMessages <- int("OUTBOX_MESSAGES", 4, 1, 1_000_000)
      startTimeout <- millis("START_TIMEOUT_MS", 10_000, 1)
      drainTimeout <- millis("DRAIN_TIMEOUT_MS", 5000, 0)
      authToken <- parsed("AUTH_TOKEN", "", "", Some(_))
    yield Config(
      port,
      workerThreads,
      inferenceUrl,
      // The contract counts them for each worker, and all of them are in this one process.
      connections * workerThreads,
      inferenceTimeout,
      flushInterval,
      jitter,
      cpuPasses,
      maxSessions,
      maxBufferFrames,
      policy,
      maxInflightJobs,
      outboxMessages,
      startTimeout,
      drainTimeout,
      Option.when(authToken.nonEmpty)(authToken),
    )

  private final class Variables(environment: String => Option[String]):
    def parsed[A](name: String, default: String, wanted: String, parse: String => Option[A]): Either[String, A] =
      val text = environment(name).getOrElse(default)
      parse(text).toRight(s"$name=${quoted(text)}: $wanted")

    def number(name: String, default: Long, min: Long, max: Long): Either[String, Long] =
      def parse(text: String) =
        val digits = Option.when(text.forall(c => c >= '0' && c <= '9'))(text)
        digits.flatMap(_.toLongOption).filter(value => value >= min && value <= max)
      parsed(name, default.toString, s"give a whole number from $min to $max", parse)

    def int(name: String, default: Int, min: Int, max: Int): Either[String, Int] =
      number(name, default, min, max).map(_.toInt)

    def millis(name: String, default: Long, min: Long): Either[String, FiniteDuration] =
      number(name, default, min, MillisMax).map(_.millis)

  /** On one line, whatever the value is. */
  private def quoted(text: String): String =
    text.map(c => if c < ' ' || c == 0x7f then '?' else c).mkString("\"", "", "\"")

  private def baseUrl(text: String): Option[Uri] =
    Try(Uri(text)).toOption.filter: uri =>
      uri.scheme == "http" && !uri.authority.host.isEmpty && uri.authority.userinfo.isEmpty &&
        uri.rawQueryString.isEmpty && uri.fragment.isEmpty
