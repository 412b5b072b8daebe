package stt

import org.scalacheck.Gen
import org.scalacheck.rng.Seed
import stt.session.Session.{Idle, Tick, Waiting}
import stt.session.{Deferral, OverflowPolicy, Schedule, Session, Settings}
import stt.websocket.CloseReason

class SessionSuite extends munit.FunSuite:
  import Fixtures.*

  private def ms(n: Long): Long = n * Millis
  private val frame = new Array[Byte](640)
  private val free = () => true

  private def started(settings: Settings = settings, jitterMs: Long = 0): Idle =
    val idle = Session.open(settings, ms(jitterMs), 0)
    assertEquals(idle.session.onStart(0, startText), None)
    idle

  private def push(session: Session, atMs: Long, frames: Int): Unit =
    for _ <- 1 to frames do assertEquals(session.onFrame(ms(atMs), frame, 0, 0), None)

  private def flushed(idle: Idle, atMs: Long): (stt.session.AudioBuffer.Batch, Waiting) =
    idle.tick(ms(atMs), free) match
      case Tick.Flush(batch, next) => (batch, next)
      case Tick.Nothing            => fail("no flush")

  /** What the session has to say, as `kind oldest-newest`. */
  private def said(session: Session): Vector[String] =
    Vector
      .unfold(()): _ =>
        session.nextToSend().map: bytes =>
          session.sent()
          val json = Json.parse(bytes)
          val kind = if json("type").text == "partial" then "partial" else json("kind").text
          (s"$kind ${json("oldest_frame_seq").long}-${json("newest_frame_seq").long}", ())

  private def answer(waiting: Waiting, atMs: Long, bytes: Int): Idle =
    waiting.settle(ms(atMs), Right(answerFor(bytes)))

  test("a late tick moves no other"):
    val schedule = Schedule(0, ms(1000))
    assertEquals(schedule.due(ms(999)), None)
    assertEquals(schedule.due(ms(1700)), Some(ms(1000)))
    assertEquals(schedule.nextNanos, ms(2000))
    assertEquals(schedule.due(ms(2000)), Some(ms(2000)))
    assertEquals(schedule.due(ms(5500)), Some(ms(3000)))
    assertEquals(schedule.nextNanos, ms(6000))

  test("flushes follow start + jitter + k * interval, and say how late they are"):
    val idle = started(jitterMs = 300)
    push(idle.session, 100, 3)
    assertEquals(idle.dueNanos, ms(1300))
    assertEquals(idle.tick(ms(1299), free), Tick.Nothing)
    val (batch, waiting) = flushed(idle, 1305)
    assertEquals(batch.span.frames, 3L)
    assertEquals(batch.pcm.length, 3 * 640)
    assertEquals(idle.session.tally.flush, Some((3L, ms(5))))
    val next = answer(waiting, 1400, batch.pcm.length)
    assertEquals(next.dueNanos, ms(2300))
    assertEquals(said(next.session), Vector("partial 1-3"))

  test("an empty buffer at a tick does nothing"):
    val idle = started()
    assertEquals(idle.tick(ms(1000), free), Tick.Nothing)
    assertEquals(idle.session.tally.deferred.toSeq, Seq(0L, 0L, 0L))

  test("audio waits behind a request for the next tick of the schedule"):
    val idle = started()
    push(idle.session, 10, 2)
    val (first, waiting) = flushed(idle, 1000)
    push(idle.session, 1500, 3)
    waiting.tick(ms(2000))
    push(idle.session, 2500, 1)
    waiting.tick(ms(3000))
    assertEquals(idle.session.tally.deferred(Deferral.InFlight.ordinal), 2L)
    val next = answer(waiting, 3100, first.pcm.length)
    assertEquals(next.tick(ms(3100), free), Tick.Nothing)
    val (second, _) = flushed(next, 4000)
    assertEquals(second.span.frames, 4L)

  test("the cap of the gateway and a full outbox defer"):
    val idle = started(settings.copy(outboxMessagesMax = 1))
    push(idle.session, 10, 1)
    assertEquals(idle.tick(ms(1000), () => false), Tick.Nothing)
    assertEquals(idle.session.tally.deferred(Deferral.Jobs.ordinal), 1L)
    val (batch, waiting) = flushed(idle, 2000)
    val next = answer(waiting, 2100, batch.pcm.length)
    push(next.session, 2200, 1)
    assertEquals(next.tick(ms(3000), free), Tick.Nothing)
    assertEquals(next.session.tally.deferred(Deferral.Outbox.ordinal), 1L)
    assertEquals(next.session.nextToSend().size, 1)
    // It is unsent until the kernel has it.
    assertEquals(next.tick(ms(4000), free), Tick.Nothing)
    next.session.sent()
    val _ = flushed(next, 5000)

  test("a request is overdue after its timeout, and its frames are named"):
    val idle = started()
    push(idle.session, 10, 2)
    val (_, waiting) = flushed(idle, 1000)
    assert(!waiting.isOverdue(ms(5999)))
    assert(waiting.isOverdue(ms(6000)))
    val next = waiting.settle(ms(6000), Left(Failure.timeout))
    assertEquals(said(next.session), Vector("timeout 1-2"))

  test("overflow: drop_oldest, drop_newest and close"):
    def overflowing(policy: OverflowPolicy) = started(settings.copy(bufferFramesMax = 20, overflowPolicy = policy))
    val oldest = overflowing(OverflowPolicy.DropOldest)
    push(oldest.session, 10, 50)
    val (afterDrop, waiting) = flushed(oldest, 1000)
    val _ = answer(waiting, 1100, afterDrop.pcm.length)
    assertEquals(said(oldest.session), Vector("overflow 1-30", "partial 31-50"))

    val newest = overflowing(OverflowPolicy.DropNewest)
    push(newest.session, 10, 50)
    val (kept, behind) = flushed(newest, 1000)
    val next = answer(behind, 1100, kept.pcm.length)
    assertEquals(next.tick(ms(2000), free), Tick.Nothing)
    assertEquals(said(newest.session), Vector("partial 1-20", "overflow 21-50"))

    val closing = overflowing(OverflowPolicy.Close)
    push(closing.session, 10, 20)
    assertEquals(closing.session.onFrame(ms(10), frame, 0, 0), Some(CloseReason.Overflow))

  test("start timeout, second start, and drain"):
    val idle = Session.open(settings, 0, 0)
    assertEquals(idle.session.expired(ms(9999)), None)
    assertEquals(idle.session.expired(ms(10_000)), Some(CloseReason.Protocol))
    val running = started()
    assertEquals(running.session.onStart(ms(1), startText), Some(CloseReason.Protocol))
    running.session.drain(ms(500))
    assertEquals(running.dueNanos, ms(500))
    assertEquals(running.session.expired(ms(500)), Some(CloseReason.GoingAway))

  test("the arrays of a batch are used again, and each batch has its own audio"):
    var idle = started()
    var seen = Vector.empty[Array[Byte]]
    for k <- 1 to 6 do
      for n <- 1 to 50 do idle.session.onFrame(ms(k * 1000 - 500), Array.fill(640)((k * 50 + n).toByte), 0, 0)
      val (batch, waiting) = flushed(idle, k * 1000)
      seen :+= batch.storage
      val expected = (1 to 50).flatMap(n => Array.fill(640)((k * 50 + n).toByte))
      assertEquals(batch.pcm.toVector, expected.toVector)
      idle = answer(waiting, k * 1000 + 100, batch.pcm.length)
      assertEquals(said(idle.session).length, 1)
    assertEquals(seen.map(System.identityHashCode).distinct.length, 2)

  test("random histories: every frame is named once, in order, and one request is in flight at most"):
    for policy <- Seq(OverflowPolicy.DropOldest, OverflowPolicy.DropNewest); seed <- 1 to 150 do
      History(policy, seed).play()

  /** A random run of one session against a random gateway and client. */
  private final class History(policy: OverflowPolicy, seed: Int):
    private val events = Gen
      .listOfN(400, Gen.frequency(6 -> "frames", 3 -> "tick", 3 -> "answer", 1 -> "fail", 2 -> "read"))
      .pureApply(Gen.Parameters.default, Seed(seed))
    private val numbers = scala.util.Random(seed)
    private val session0 = started(settings.copy(bufferFramesMax = 1 + numbers.nextInt(40), overflowPolicy = policy))
    private val session = session0.session
    private var state: Idle | Waiting = session0
    private var inFlight = Option.empty[stt.session.AudioBuffer.Batch]
    private var nowMs = 0L
    private var accepted = 0L
    private var named = 0L

    def play(): Unit =
      events.foreach(step)
      // The client reads, the gateway has room, and the last answers come.
      for _ <- 1 to 20 do Seq("read", "answer", "tick", "answer", "read").foreach(step(_, calm = true))
      assertEquals(named, accepted, s"$policy, seed $seed")

    private def step(event: String): Unit = step(event, calm = false)

    private def step(event: String, calm: Boolean): Unit =
      nowMs += (if event == "tick" then 700 + numbers.nextInt(700) else numbers.nextInt(30))
      event match
        case "frames" =>
          val count = numbers.nextInt(30)
          push(session, nowMs, count)
          accepted += count
        case "tick" => tick(calm)
        case "answer" =>
          end(Right(answerFor(inFlight.fold(0L)(_.pcm.length))))
        case "fail" => end(Left(if numbers.nextBoolean() then Failure.timeout else Failure.status(503)))
        case _      => while readOne() do ()

    private def tick(calm: Boolean): Unit = state match
      case idle: Idle =>
        idle.tick(ms(nowMs), () => calm || numbers.nextInt(4) > 0) match
          case Tick.Nothing => ()
          case Tick.Flush(batch, next) =>
            assert(inFlight.isEmpty)
            assertEquals(batch.pcm.length.toLong, batch.span.frames * 640)
            inFlight = Some(batch)
            state = next
      case waiting: Waiting => waiting.tick(ms(nowMs))

    private def end(result: Either[Failure, Inference]): Unit = state match
      case _: Idle => ()
      case waiting: Waiting =>
        inFlight = None
        state = waiting.settle(ms(nowMs), result)

    private def readOne(): Boolean =
      val message = session.nextToSend()
      message.foreach: bytes =>
        session.sent()
        val json = Json.parse(bytes)
        assertEquals(json("oldest_frame_seq").long, named + 1, s"$policy, seed $seed")
        named = json("newest_frame_seq").long
        assert(named <= accepted)
      message.isDefined
