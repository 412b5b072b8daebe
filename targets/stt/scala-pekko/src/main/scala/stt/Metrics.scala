package stt

import java.util.concurrent.atomic.LongAdder

import stt.session.{Deferral, Tally}

/** Prometheus metrics. Sessions count for themselves and fold their counts in here about once per flush, so
  * `stt_frames_total` may lag by a flush interval.
  */
final class Metrics:
  import Metrics.*

  val sessions = LongAdder()
  val sessionsRejected = LongAdder()
  private val frames = LongAdder()
  private val framesDropped = LongAdder()
  private val partials = LongAdder()
  private val errors = FailureKind.values.map(_ => LongAdder())
  private val deferred = Deferral.values.map(_ => LongAdder())
  private val bufferFrames = Histogram(Array(1, 5, 10, 25, 40, 45, 50, 55, 60, 75, 100, 150, 200, 300, 500), 1)
  private val flushLateness = Histogram(latenessBounds, NanosPerSecond)
  private val inference = Histogram(inferenceBounds, NanosPerSecond)

  /** Adds what a session has counted, and clears it. */
  def fold(tally: Tally): Unit =
    frames.add(tally.frames)
    framesDropped.add(tally.framesDropped)
    partials.add(tally.partials)
    for i <- errors.indices if tally.errors(i) > 0 do errors(i).add(tally.errors(i))
    for i <- deferred.indices if tally.deferred(i) > 0 do deferred(i).add(tally.deferred(i))
    tally.flush.foreach: (frames, lateness) =>
      bufferFrames.observe(frames)
      flushLateness.observe(lateness)
    tally.inferenceNanos.foreach(inference.observe)
    tally.clear()

  /** The text format, version 0.0.4. */
  def render(sessionsOpen: Int, jobsInflight: Int): String =
    val text = StringBuilder(6 * 1024)
    def single(name: String, kind: String, value: Long): Unit =
      text ++= s"# TYPE $name $kind\n$name $value\n"
    single("stt_sessions", "gauge", sessionsOpen)
    single("stt_sessions_total", "counter", sessions.sum)
    single("stt_sessions_rejected_total", "counter", sessionsRejected.sum)
    single("stt_frames_total", "counter", frames.sum)
    single("stt_frames_dropped_total", "counter", framesDropped.sum)
    single("stt_partials_total", "counter", partials.sum)
    text ++= "# TYPE stt_errors_total counter\n"
    for (kind, total) <- FailureKind.values.zip(errors) do
      text ++= s"""stt_errors_total{stage="${kind.stage}",kind="${kind.kind}"} ${total.sum}\n"""
    single("stt_jobs_inflight", "gauge", jobsInflight)
    text ++= "# TYPE stt_ticks_deferred_total counter\n"
    for (deferral, total) <- Deferral.values.zip(deferred) do
      text ++= s"""stt_ticks_deferred_total{reason="${deferral.reason}"} ${total.sum}\n"""
    bufferFrames.render(text, "stt_buffer_frames")
    flushLateness.render(text, "stt_flush_lateness_seconds")
    inference.render(text, "stt_inference_seconds")
    text.result()

object Metrics:
  private val NanosPerSecond = 1_000_000_000L

  private def millis(bounds: Double*): Array[Long] = bounds.map(ms => (ms * 1e6).toLong).toArray

  private val latenessBounds = millis(0.5, 1, 2, 5, 10, 20, 50, 100, 250, 500, 1000)

  private val inferenceBounds =
    millis(10, 25, 50, 75, 100, 125, 150, 200, 300, 500, 750, 1000, 2500, 5000)

  /** Over whole numbers, in frames or nanoseconds; rendered in frames or seconds. */
  private final class Histogram(bounds: Array[Long], unitsPerRendered: Long):
    private val buckets = Array.fill(bounds.length + 1)(LongAdder())
    private val total = LongAdder()

    def observe(value: Long): Unit =
      val bucket = bounds.indexWhere(value <= _)
      buckets(if bucket < 0 then bounds.length else bucket).increment()
      total.add(value)

    def render(text: StringBuilder, name: String): Unit =
      text ++= s"# TYPE $name histogram\n"
      var count = 0L
      for (bound, bucket) <- bounds.zip(buckets) do
        count += bucket.sum
        text ++= s"""${name}_bucket{le="${rendered(bound)}"} $count\n"""
      count += buckets.last.sum
      text ++= s"""${name}_bucket{le="+Inf"} $count\n"""
      text ++= s"${name}_sum ${rendered(total.sum)}\n${name}_count $count\n"

    private def rendered(value: Long): String =
      if unitsPerRendered == 1 then value.toString
      else java.math.BigDecimal.valueOf(value).divide(java.math.BigDecimal.valueOf(unitsPerRendered)).toPlainString
