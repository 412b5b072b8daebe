package stt

import org.apache.pekko.util.ByteString
import org.scalacheck.Gen
import org.scalacheck.rng.Seed

/** The session's rules with a simulated clock: no socket, no actor. */
class SessionSuite extends munit.FunSuite:
  private val Millis = 1_000_000L
  private val pcm = ByteString(new Array[Byte](Session.FrameBytes))
  private val Room = 4
  private val free = () => true

  /** Ticks are due at 1107, 1207, … ms. */
  private def session(policy: OverflowPolicy = OverflowPolicy.DropOldest, maxBufferFrames: Int = 3): Session =
    Session(Session.Settings(100 * Millis, maxBufferFrames, policy), 1007 * Millis)

  private def offer(subject: Session, count: Int): Unit =
    for _ <- 1 to count do assertNotEquals(subject.offer(pcm, 1000 * Millis), Offer.Refused)

  private def tick(subject: Session, atMs: Long, room: Int = Room, takeJob: () => Boolean = free): Tick =
    subject.tick(atMs * Millis, room, takeJob)

  private def range(span: Option[Span]): Option[(Long, Long)] = span.map(it => (it.oldestSeq, it.newestSeq))
  private def range(tick: Tick): Option[(Long, Long)] = range(tick.batch.map(_.span))

  test("the schedule is absolute: a late tick does not move the later ones"):
    val subject = session()
    assertEquals(subject.nextTickNanos, 1107 * Millis)
    assertEquals(tick(subject, 1163).latenessNanos, 56 * Millis)
    assertEquals(subject.nextTickNanos, 1207 * Millis)

  test("ticks that were missed are passed over"):
    val subject = session()
    assertEquals(tick(subject, 1450).latenessNanos, 343 * Millis)
    assertEquals(subject.nextTickNanos, 1507 * Millis)

  test("a tick that finds nothing does nothing, even while a request is in flight"):
    val subject = session()
    assertEquals(tick(subject, 1107, room = 0), Tick(0))
    offer(subject, 1)
    assertEquals(range(tick(subject, 1207)), Some((1L, 1L)))
    assertEquals(tick(subject, 1307), Tick(0))

  test("one request is in flight: ticks defer until it is answered, and the audio waits for the next"):
    val subject = session()
    offer(subject, 1)
    assertEquals(tick(subject, 1107).batch.map(_.pcm.length), Some(640))
    assert(subject.isBusy)
    offer(subject, 2)
    assertEquals(tick(subject, 1207).deferred, Some(Deferral.InFlight))
    subject.answered()
    val next = tick(subject, 1307)
    assertEquals(range(next), Some((2L, 3L)))
    assertEquals(next.batch.map(_.pcm.length), Some(1280))

  test("a full outbox and the cap of the gateway defer"):
    val subject = session()
    offer(subject, 2)
    assertEquals(tick(subject, 1107, room = 0, () => fail("asked for a job")).deferred, Some(Deferral.Outbox))
    assertEquals(tick(subject, 1207, takeJob = () => false).deferred, Some(Deferral.Jobs))
    assertEquals(subject.bufferFrames, 2)
    assertEquals(range(tick(subject, 1307)), Some((1L, 2L)))

  test("drop_oldest names what it dropped before the batch"):
    val subject = session(OverflowPolicy.DropOldest)
    offer(subject, 5)
    val made = tick(subject, 1107)
    assertEquals(range(made.dropped), Some((1L, 2L)))
    assertEquals(range(made), Some((3L, 5L)))

  test("an outbox with room for one takes the dropped frames, and the batch waits"):
    val subject = session(OverflowPolicy.DropOldest)
    offer(subject, 5)
    val made = tick(subject, 1107, room = 1)
    assertEquals(range(made.dropped), Some((1L, 2L)))
    assertEquals((made.deferred, made.batch), (Some(Deferral.Outbox), None))

  test("drop_newest names what it dropped after the batch"):
    val subject = session(OverflowPolicy.DropNewest)
    offer(subject, 5)
    val made = tick(subject, 1107)
    assertEquals((made.dropped, range(made)), (None, Some((1L, 3L))))
    subject.answered()
    assertEquals(range(tick(subject, 1207).dropped), Some((4L, 5L)))

  test("close refuses the frame that does not fit"):
    val subject = session(OverflowPolicy.Close)
    offer(subject, 3)
    assertEquals(subject.offer(pcm, 0), Offer.Refused)

  for policy <- OverflowPolicy.values do
    test(s"ledger, $policy: every accepted frame is named once, in order, with one request in flight at most"):
      for seed <- 1 to 300 do History(policy, seed).play()

  /** A random run of one session against a random gateway and client. */
  private final class History(policy: OverflowPolicy, seed: Int):
    private val events = Gen
      .listOfN(200, Gen.frequency(5 -> "frames", 3 -> "tick", 2 -> "answer"))
      .pureApply(Gen.Parameters.default, Seed(seed))
    private val numbers = scala.util.Random(seed)
    private val subject = session(policy, 1 + numbers.nextInt(20))
    private var nowNanos = 1000 * Millis
    private var inFlight = Option.empty[Batch]
    private var accepted = 0L
    private var named = 0L

    def play(): Unit =
      events.foreach:
        case "frames" => for _ <- 0 to numbers.nextInt(10) do offerOne()
        case "tick"   => tickOnce(numbers.nextInt(4), () => numbers.nextInt(4) > 0)
        case _        => answer()
      // The last answer comes; two ticks with room name the buffer, and what was dropped behind it.
      for _ <- 1 to 2 do
        answer()
        tickOnce(Room, free)
      answer()
      assertEquals(named, accepted, s"seed $seed")

    private def offerOne(): Unit =
      nowNanos += numbers.nextInt(20) * Millis
      if subject.offer(pcm, nowNanos) != Offer.Refused then accepted += 1

    private def tickOnce(room: Int, takeJob: () => Boolean): Unit =
      nowNanos = math.max(nowNanos, subject.nextTickNanos) + numbers.nextInt(2) * 150 * Millis
      val made = subject.tick(nowNanos, room, takeJob)
      assert(made.latenessNanos >= 0)
      assert(subject.nextTickNanos > nowNanos)
      made.dropped.foreach(name)
      made.batch.foreach: batch =>
        assert(inFlight.isEmpty, "a second request")
        assertEquals(batch.pcm.length.toLong, batch.span.frames * Session.FrameBytes)
        inFlight = Some(batch)

    private def answer(): Unit =
      inFlight.foreach: batch =>
        name(batch.span)
        subject.answered()
      inFlight = None

    private def name(span: Span): Unit =
      assertEquals(span.oldestSeq, named + 1, s"seed $seed")
      assert(span.newestSeq >= span.oldestSeq && span.oldestAtNanos <= span.newestAtNanos)
      named = span.newestSeq
