package stt

/** One row of the contract's error table: `stage`, `kind` and `retryable` of an `error` message follow from it. */
enum FailureKind(val stage: String, val kind: String, val retryable: Boolean):
  case Timeout extends FailureKind("inference_request", "timeout", true)
  case ConnectionReset extends FailureKind("inference_request", "connection_reset", true)
  case Http429 extends FailureKind("inference_request", "http_429", true)
  case Http5xx extends FailureKind("inference_request", "http_5xx", true)
  case Http4xx extends FailureKind("inference_request", "http_4xx", false)
  case ParseError extends FailureKind("inference_response_parse", "parse_error", false)
  case Overflow extends FailureKind("input_buffer", "overflow", false)

/** Why a range of frames has no transcript. `status` is that of the answer, where there was one. */
final case class Failure(kind: FailureKind, message: String, status: Option[Int])

object Failure:
  private val MessageCharsMax = 200

  val timeout: Failure = Failure(FailureKind.Timeout, "no answer from inference in time", None)

  val overflow: Failure = Failure(FailureKind.Overflow, "input buffer full, frames dropped", None)

  def connection(cause: String): Failure =
    Failure(FailureKind.ConnectionReset, s"inference connection: $cause".take(MessageCharsMax), None)

  /** An answer with a status other than 200. */
  def status(status: Int): Failure =
    val kind = status match
      case 429                       => FailureKind.Http429
      case s if s >= 500 && s <= 599 => FailureKind.Http5xx
      case s if s >= 400 && s <= 499 => FailureKind.Http4xx
      // Neither the promised answer nor an HTTP error: not what the contract lets us parse.
      case _ => FailureKind.ParseError
    Failure(kind, s"inference answered with status $status", Some(status))

  /** A 200 whose body is not the strict JSON. */
  def parse(cause: String): Failure =
    // The parser quotes the answer over several lines, and that may be long.
    val line = cause.linesIterator.nextOption().getOrElse("not the strict JSON")
    Failure(FailureKind.ParseError, s"inference answer: $line".take(MessageCharsMax), Some(200))
