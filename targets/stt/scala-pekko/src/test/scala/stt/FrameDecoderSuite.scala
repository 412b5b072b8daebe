package stt

import org.scalacheck.Gen
import org.scalacheck.rng.Seed
import stt.websocket.FrameDecoder.Progress
import stt.websocket.{CloseReason, FrameDecoder, Masking}

class FrameDecoderSuite extends munit.FunSuite:
  import Fixtures.*

  private final class Recorder extends FrameDecoder.Sink:
    var starts = Vector.empty[String]
    var frames = Vector.empty[Vector[Byte]]
    var pings = Vector.empty[String]

    def start(text: Array[Byte]): Option[CloseReason] =
      starts :+= String(text, "UTF-8")
      Option.when(!Messages.isStart(text))(CloseReason.Protocol)

    def frame(source: Array[Byte], offset: Int, key: Int): Option[CloseReason] =
      val copy = new Array[Byte](640)
      Masking.copy(source, offset, copy, 0, 640, key)
      frames :+= copy.toVector
      None

    def ping(payload: Array[Byte]): Unit = pings :+= String(payload, "UTF-8")

  private def audio(n: Int): Array[Byte] = Array.tabulate(640)(i => (i * 7 + n).toByte)

  /** Feeds the bytes in the given cuts; the last progress. */
  private def feed(decoder: FrameDecoder, bytes: Array[Byte], cut: Int = Int.MaxValue): Progress =
    bytes.grouped(cut).foldLeft(Progress.More: Progress): (progress, part) =>
      if progress == Progress.More then decoder.feed(part, 0, part.length) else progress

  private def started: (Recorder, FrameDecoder) =
    val recorder = Recorder()
    val decoder = FrameDecoder(recorder)
    assertEquals(feed(decoder, clientFrame(1, startText)), Progress.More)
    (recorder, decoder)

  private def codeOf(progress: Progress): Option[Int] = progress match
    case Progress.Violation(reason) => Some(reason.code)
    case _                          => None

  for vector <- Vectors.cases("frames") do
    test(s"frame: ${vector("id").text}"):
      val (recorder, decoder) = started
      val length = vector("length").long
      val payload = if length > 65536 then Array.emptyByteArray else Array.fill(length.toInt)(' '.toByte)
      val bytes = clientFrame(if vector("opcode").text == "text" then 1 else 2, payload, declared = length)
      val expected = Option.when(!vector("close").isNull)(vector("close").long.toInt)
      assertEquals(codeOf(feed(decoder, bytes)), expected)
      assertEquals(recorder.frames.length, if vector("ok").flag then 1 else 0)

  test("violations of the protocol"):
    val broken = Map(
      "unmasked" -> Array[Byte](0x82.toByte, 0x05),
      "reserved bit" -> Array[Byte](0xc2.toByte, 0x85.toByte),
      "reserved opcode" -> Array[Byte](0x83.toByte, 0x80.toByte),
      "orphaned continuation" -> clientFrame(0, audio(1)),
      "fragmented ping" -> clientFrame(9, Array(1), fin = false),
      "long ping" -> clientFrame(9, new Array(126)),
      "interleaved" -> (clientFrame(2, new Array(320), fin = false) ++ clientFrame(2, audio(1))),
      "illegal close code" -> clientFrame(8, Array(0x03, 0xed.toByte)),
      "close of one byte" -> clientFrame(8, Array(0x03)),
      "close reason not UTF-8" -> clientFrame(8, Array(0x03, 0xe8.toByte, 0xc3.toByte, 0x28)),
    )
    for (name, bytes) <- broken do
      val (_, decoder) = started
      assertEquals(codeOf(feed(decoder, bytes)), Some(1002), name)

  test("audio before the start, and a start that is none"):
    assertEquals(codeOf(feed(FrameDecoder(Recorder()), clientFrame(2, audio(1)))), Some(1002))
    assertEquals(codeOf(feed(FrameDecoder(Recorder()), clientFrame(1, "{}".getBytes))), Some(1002))

  test("fragments that are too long together are refused by their headers"):
    val (_, decoder) = started
    val first = clientFrame(2, new Array(600), fin = false)
    assertEquals(codeOf(feed(decoder, first ++ clientFrame(0, Array.empty, fin = false, declared = 41))), Some(1003))

  test("a client's close is handed back with its payload"):
    val (_, decoder) = started
    val sent = Array[Byte](0x10, 0xe1.toByte) ++ "bye".getBytes
    feed(decoder, clientFrame(8, sent)) match
      case Progress.Closed(payload) => assertEquals(payload.toSeq, sent.toSeq)
      case other                    => fail(s"$other")

  test("any fragmentation and any cut of the bytes gives the same frames"):
    val histories = for
      pieces <- Gen.listOfN(12, Gen.frequency(3 -> Gen.const(Nil), 2 -> Gen.listOfN(2, Gen.choose(0, 640))))
      cut <- Gen.choose(1, 2000)
    yield (pieces, cut)
    for seed <- 1 to 200 do
      val (pieces, cut) = histories.pureApply(Gen.Parameters.default, Seed(seed))
      val bytes = pieces.zipWithIndex.flatMap: (cuts, n) =>
        val bounds = (0 :: cuts.sorted) :+ 640
        val parts = bounds.zip(bounds.tail).map((from, until) => audio(n).slice(from, until))
        parts.zipWithIndex.flatMap: (part, i) =>
          clientFrame(if i == 0 then 2 else 0, part, fin = i == parts.length - 1) ++
            (if i < parts.length - 1 then clientFrame(9, s"$n.$i".getBytes) else Array.emptyByteArray)
      val (recorder, decoder) = started
      assertEquals(feed(decoder, bytes.toArray, cut), Progress.More)
      assertEquals(recorder.frames, pieces.indices.map(audio(_).toVector).toVector, s"seed $seed")
      assertEquals(recorder.pings.length, pieces.map(_.length).sum)
