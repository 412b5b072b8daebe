package stt

import scala.concurrent.Await
import scala.concurrent.duration.*
import scala.util.Try

import org.apache.pekko.actor.typed.ActorSystem
import org.apache.pekko.actor.typed.scaladsl.Behaviors
import org.apache.pekko.http.scaladsl.model.ws.{BinaryMessage, Message, TextMessage}
import org.apache.pekko.stream.scaladsl.Source
import org.apache.pekko.util.ByteString
import stt.SessionActor.Command

/** What is taken of a client's messages, whole or as a stream. */
class SessionFlowSuite extends munit.FunSuite:
  private given system: ActorSystem[Nothing] = ActorSystem(Behaviors.empty, "test")

  override def afterAll(): Unit = system.terminate()

  private val start = """{"type":"start"}"""
  private val frame = ByteString(Array.tabulate(Session.FrameBytes)(_.toByte))

  private def read(message: Message, index: Long): Try[Command] =
    Try(Await.result(SessionFlow.read(message, index), 10.seconds))

  test("a start is taken first and only first"):
    assertEquals(read(TextMessage(start), 0).toOption, Some(Command.Start))
    assertEquals(read(TextMessage(Source(List(start.take(5), start.drop(5)))), 0).toOption, Some(Command.Start))
    assert(read(TextMessage(start), 1).isFailure)
    assert(read(TextMessage(Source.maybe[String]), 1).isFailure)
    assert(read(TextMessage(Source.empty[String]), 0).isFailure)
    assert(read(TextMessage(Source.repeat("  ")), 0).isFailure)

  test("a frame is taken after the start, whole or in parts"):
    assert(read(BinaryMessage(frame), 0).isFailure)
    assertEquals(read(BinaryMessage(frame), 1).toOption, Some(Command.Frame(frame)))
    val parts = BinaryMessage(Source(frame.grouped(100).toList))
    assertEquals(read(parts, 2).toOption, Some(Command.Frame(frame)))

  for vector <- Vectors.cases("frames") do
    test(s"frame: ${vector.field[String]("id")}"):
      val length = vector.field[Long]("length")
      val message =
        if vector.field[String]("opcode") == "text" then TextMessage(Source.repeat(" ").take(length))
        else BinaryMessage(Source.repeat(ByteString(0)).take(length))
      assertEquals(read(message, 1).isSuccess, vector.field[Boolean]("ok"))
