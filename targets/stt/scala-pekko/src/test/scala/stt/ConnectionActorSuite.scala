package stt

import scala.concurrent.duration.*

import com.typesafe.config.ConfigFactory
import org.apache.pekko.actor.ActorSystem
import org.apache.pekko.actor.typed.scaladsl.adapter.*
import org.apache.pekko.io.Tcp
import org.apache.pekko.testkit.{ExplicitlyTriggeredScheduler, TestProbe}
import org.apache.pekko.util.ByteString
import stt.inference.{InferenceClient, InferenceService}

/** A connection's actor against a socket that is a probe, with a scheduler that moves only when told. */
class ConnectionActorSuite extends munit.FunSuite:
  import Fixtures.*

  private val upgrade = "GET /ws/stt HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"

  private final class Site(variables: (String, String)*) extends AutoCloseable:
    given system: ActorSystem = ActorSystem(
      "test",
      ConfigFactory
        .parseString(s"""pekko.scheduler.implementation = "${classOf[ExplicitlyTriggeredScheduler].getName}"""")
        .withFallback(ConfigFactory.load()),
    )
    private val config = Config.read(variables.toMap.get).toOption.get
    private var nowNanos = 0L

    /** Sizes of the batches sent, and what ends the last of them. */
    var batches = Vector.empty[Int]
    var answer: Either[Failure, Inference] => Unit = _ => ()
    private val inference: InferenceService = new InferenceService:
      def infer(pcm: ByteString)(onResult: Either[Failure, Inference] => Unit): InferenceClient.Call =
        batches :+= pcm.length
        answer = onResult
        InferenceClient.Call(onResult)
    val gateway = Gateway(config, inference, () => nowNanos)
    val connection = TestProbe()
    val actor = system.spawnAnonymous(ConnectionActor(gateway, HttpFront(gateway), connection.ref))
    val events = connection.expectMsgType[Tcp.Register].handler

    def pass(time: FiniteDuration): Unit =
      settle()
      nowNanos += time.toNanos
      system.scheduler.asInstanceOf[ExplicitlyTriggeredScheduler].timePasses(time)
      settle()

    def passUnanswered(time: FiniteDuration): Unit =
      nowNanos += time.toNanos
      system.scheduler.asInstanceOf[ExplicitlyTriggeredScheduler].timePasses(time)

    /** Waits until the actor has dealt with all that it was sent: a ping goes through behind it. */
    def settle(): Unit =
      receive(clientFrame(9, "settled".getBytes))
      assertEquals(written().drop(2), ByteString("settled"))

    def receive(bytes: Array[Byte]): Unit = events ! Tcp.Received(ByteString(bytes))

    /** The next write, which the kernel takes at once. */
    def written(): ByteString =
      val write = connection.fishForSpecificMessage(10.seconds) { case write: Tcp.Write => write }
      events ! write.ack
      write.data

    def upgraded(): Unit =
      receive(upgrade.getBytes)
      val head = written().utf8String
      assert(head.startsWith("HTTP/1.1 101"), head)
      assert(head.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), head)

    def expectClose(code: Int): Unit =
      assertEquals(written(), ByteString(0x88, 2, code >> 8, code & 0xff))
      val _ = connection.fishForSpecificMessage(10.seconds) { case Tcp.ConfirmedClose => true }

    def close(): Unit =
      val _ = system.terminate()

  private def withSite(variables: (String, String)*)(test: Site => Unit): Unit =
    val site = Site(variables*)
    try test(site)
    finally site.close()

  test("a request without an upgrade gets its answer, and the connection ends"):
    withSite(): site =>
      site.receive("GET /ws/stt HTTP/1.1\r\nHo".getBytes)
      site.receive("st: x\r\n\r\n".getBytes)
      assert(site.written().utf8String.startsWith("HTTP/1.1 426"))
      val _ = site.connection.fishForSpecificMessage(10.seconds) { case Tcp.ConfirmedClose => true }

  test("bytes behind the handshake are the session's, and a violation closes with its code"):
    withSite(): site =>
      site.receive(upgrade.getBytes ++ clientFrame(1, startText) ++ clientFrame(2, new Array(639)))
      assert(site.written().utf8String.startsWith("HTTP/1.1 101"))
      site.expectClose(1003)

  test("each read is asked for, and only when the one before has been dealt with"):
    withSite(): site =>
      val asked: PartialFunction[Any, Boolean] = { case Tcp.ResumeReading => true }
      def expectOneRead(): Unit =
        site.connection.expectMsg(Tcp.ResumeReading)
        site.connection.expectNoMessage(50.millis)
      expectOneRead()
      site.receive(upgrade.take(20).getBytes)
      expectOneRead()
      site.receive(upgrade.drop(20).getBytes)
      assert(site.written().utf8String.startsWith("HTTP/1.1 101"))
      expectOneRead()
      site.receive(clientFrame(1, startText))
      expectOneRead()
      // Even what comes after a close is read, one at a time, for the close code not to be lost to a reset.
      site.receive(clientFrame(2, new Array(639)))
      site.expectClose(1003)
      site.receive(new Array(1000))
      val _ = site.connection.fishForSpecificMessage(10.seconds)(asked)

  test("over MAX_SESSIONS the answer is 503, and a place is free when its session has ended"):
    withSite("MAX_SESSIONS" -> "1"): site =>
      site.upgraded()
      assertEquals(site.gateway.sessions.inUse, 1)
      assert(!site.gateway.sessions.acquire())
      site.receive(clientFrame(8, Array.emptyByteArray))
      assertEquals(site.written(), ByteString(0x88, 0))
      assertEquals(site.gateway.sessions.inUse, 0)

  test("a ping is answered"):
    withSite(): site =>
      site.upgraded()
      site.receive(clientFrame(9, "a".getBytes))
      assertEquals(site.written(), ByteString(0x8a, 1, 'a'))

  test("the end of a drain closes with 1001"):
    withSite(): site =>
      site.upgraded()
      site.receive(clientFrame(1, startText))
      site.actor ! ConnectionActor.Command.Drain(Millis)
      site.expectClose(1001)
  test("nothing within START_TIMEOUT_MS closes with 1002"):
    withSite(): site =>
      site.upgraded()
      site.pass(9990.millis)
      site.passUnanswered(10.millis)
      site.expectClose(1002)

  test("one request is in flight, ticks keep their schedule, and the answer is a partial"):
    withSite("FLUSH_PHASE_JITTER_MS" -> "0"): site =>
      site.upgraded()
      site.receive(clientFrame(1, startText) ++ clientFrame(2, new Array(640)) ++ clientFrame(2, new Array(640)))
      site.pass(999.millis)
      assertEquals(site.batches, Vector.empty)
      site.pass(1.milli)
      assertEquals(site.batches, Vector(1280))
      assertEquals(site.gateway.jobs.inUse, 1)
      site.receive(clientFrame(2, new Array(640)))
      site.pass(1000.millis)
      site.pass(1000.millis)
      assertEquals(site.batches, Vector(1280))
      site.answer(Right(answerFor(1280)))
      val partial = Json.parse(site.written().drop(4).toArray)
      assertEquals(partial("newest_frame_seq").long, 2L)
      assertEquals(partial("flush_lateness_ms").number, BigDecimal(0))
      site.pass(999.millis)
      assertEquals(site.batches, Vector(1280))
      site.pass(1.milli)
      assertEquals(site.batches, Vector(1280, 640))
      assert(site.gateway.metrics.render(1, 1).contains("stt_ticks_deferred_total{reason=\"inflight\"} 2\n"))

  test("a late answer to a request that timed out is nobody's"):
    withSite("FLUSH_PHASE_JITTER_MS" -> "0", "INFERENCE_TIMEOUT_MS" -> "500"): site =>
      site.upgraded()
      site.receive(clientFrame(1, startText) ++ clientFrame(2, new Array(640)))
      site.pass(1000.millis)
      val late = site.answer
      site.passUnanswered(500.millis)
      assertEquals(Json.parse(site.written().drop(4).toArray)("kind").text, "timeout")
      assertEquals(site.gateway.jobs.inUse, 0)
      late(Right(answerFor(640)))
      site.settle()
