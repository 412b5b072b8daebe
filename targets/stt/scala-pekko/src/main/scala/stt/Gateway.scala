package stt

import java.util.concurrent.atomic.AtomicInteger

import stt.inference.InferenceService

/** What all connections share. `clock` is monotonic, in nanoseconds. */
final class Gateway(val config: Config, val inference: InferenceService, val clock: () => Long):
  val metrics = Metrics()

  /** Sessions open now, for admission. */
  val sessions = Limit(config.sessionsMax)

  /** Requests in flight now, for the gateway-wide cap. */
  val jobs = Limit(config.jobsMax)

  /** Set once, when the gateway has been told to stop. */
  @volatile var isDraining = false

/** How many of something exist now, and how many may; a `max` of 0 is no limit. Touched twice per flush, never per
  * frame.
  */
final class Limit(max: Int):
  private val used = AtomicInteger()

  def inUse: Int = used.get

  /** Takes one, unless all are taken. */
  def acquire(): Boolean =
    if max == 0 then
      val _ = used.incrementAndGet()
      true
    else used.getAndUpdate(n => if n < max then n + 1 else n) < max

  def release(): Unit =
    val _ = used.decrementAndGet()
