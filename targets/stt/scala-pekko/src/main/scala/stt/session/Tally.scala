package stt.session

import stt.FailureKind

/** Why a tick with audio to flush did nothing. */
enum Deferral(val reason: String):
  /** The session's request has not come back. */
  case InFlight extends Deferral("inflight")

  /** The gateway has `MAX_INFLIGHT_JOBS` requests in flight. */
  case Jobs extends Deferral("jobs")

  /** The client has not taken `OUTBOX_MESSAGES` messages. */
  case Outbox extends Deferral("outbox")

/** What a session counts by itself until it folds it into the shared metrics, so that a frame touches no shared
  * memory.
  */
final class Tally:
  var frames = 0L
  var framesDropped = 0L
  var partials = 0L
  val errors = new Array[Long](FailureKind.values.length)
  val deferred = new Array[Long](Deferral.values.length)

  /** Frames and lateness of the flush that took place, if one did. */
  var flush = Option.empty[(Long, Long)]
  var inferenceNanos = Option.empty[Long]

  def clear(): Unit =
    frames = 0
    framesDropped = 0
    partials = 0
    java.util.Arrays.fill(errors, 0)
    java.util.Arrays.fill(deferred, 0)
    flush = None
    inferenceNanos = None
