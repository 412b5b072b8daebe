package stt

import java.util.concurrent.atomic.{AtomicInteger, DoubleAdder, LongAdder}

/** How many of something exist now, and how many may; a `max` of 0 is no limit. */
final class Limit(max: Int):
  private val used = AtomicInteger()

  def inUse: Int = used.get

  /** Takes one, unless all are taken. */
  def acquire(): Boolean =
    if max == 0 then used.incrementAndGet() > 0
    else used.getAndUpdate(n => if n < max then n + 1 else n) < max

  def release(): Unit =
    val _ = used.decrementAndGet()

/** The counters of the gateway (section 8), shared by all of its threads. */
final class Metrics(maxSessions: Int, maxInflightJobs: Int):
  import Metrics.*

  val sessions = Limit(maxSessions)
  val jobs = Limit(maxInflightJobs)
  val sessionsTotal = LongAdder()
  val sessionsRejected = LongAdder()
  val frames = LongAdder()
  val framesDropped = LongAdder()
  val partials = LongAdder()
  val bufferFrames = Histogram(Vector(1, 2, 5, 10, 20, 50, 75, 100, 150, 200, 300, 500))
  val flushLatenessSeconds = Histogram(secondsBounds)
  val inferenceSeconds = Histogram(secondsBounds)
  private val errorCounts = FailureKind.values.toVector.map(_ -> LongAdder())
  private val deferredCounts = Deferral.values.toVector.map(_ -> LongAdder())

  def failed(kind: FailureKind): Unit = errorCounts(kind.ordinal)._2.increment()

  def deferred(reason: Deferral): Unit = deferredCounts(reason.ordinal)._2.increment()

  /** The text format, version 0.0.4. Every series is there from the start, so that a rate has its first event. */
  def render: String =
    val errorSeries = errorCounts.map: (kind, count) =>
      s"""{stage="${kind.stage}",kind="${kind.kind}"}""" -> count.sum
    val deferredSeries = deferredCounts.map: (reason, count) =>
      s"""{reason="${reason.reason}"}""" -> count.sum
    val families = List(
      family("stt_sessions", "gauge", "" -> sessions.inUse),
      family("stt_sessions_total", "counter", "" -> sessionsTotal.sum),
      family("stt_sessions_rejected_total", "counter", "" -> sessionsRejected.sum),
      family("stt_frames_total", "counter", "" -> frames.sum),
      family("stt_frames_dropped_total", "counter", "" -> framesDropped.sum),
      family("stt_partials_total", "counter", "" -> partials.sum),
      family("stt_errors_total", "counter", errorSeries*),
      family("stt_jobs_inflight", "gauge", "" -> jobs.inUse),
      family("stt_ticks_deferred_total", "counter", deferredSeries*),
      family("stt_buffer_frames", "histogram", bufferFrames.series*),
      family("stt_flush_lateness_seconds", "histogram", flushLatenessSeconds.series*),
      family("stt_inference_seconds", "histogram", inferenceSeconds.series*),
    )
    families.mkString

object Metrics:
  private val secondsBounds =
    Vector(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0, 2.5, 5.0)

  private def family(name: String, kind: String, series: (String, AnyVal)*): String =
    series.map((suffix, value) => s"$name$suffix $value\n").mkString(s"# TYPE $name $kind\n", "", "")

  final class Histogram(bounds: Vector[Double]):
    private val counts = Vector.fill(bounds.length + 1)(LongAdder())
    private val sum = DoubleAdder()

    def observe(value: Double): Unit =
      val bucket = bounds.indexWhere(value <= _)
      counts(if bucket < 0 then bounds.length else bucket).increment()
      sum.add(value)

    private[Metrics] def series: Seq[(String, AnyVal)] =
      val cumulative = counts.map(_.sum).scanLeft(0L)(_ + _).tail
      val labels = bounds.map(bound => BigDecimal(bound).bigDecimal.stripTrailingZeros.toPlainString) :+ "+Inf"
      val buckets = labels.zip(cumulative).map((label, count) => s"""_bucket{le="$label"}""" -> count)
      buckets :+ ("_sum" -> sum.sum) :+ ("_count" -> cumulative.last)
