package stt

import java.nio.file.{Files, Path}

import com.github.plokhotnyuk.jsoniter_scala.core.*
import stt.session.{OverflowPolicy, Settings}

/** JSON of any shape, for the vectors and for what the gateway writes. */
enum Json:
  case Null
  case Flag(value: Boolean)
  case Num(value: BigDecimal)
  case Text(value: String)
  case Items(values: Vector[Json])
  case Fields(values: Map[String, Json])

  def apply(name: String): Json = this match
    case Fields(values) => values.getOrElse(name, Null)
    case other          => throw IllegalArgumentException(s"no object: $other")

  def text: String = this match
    case Text(value) => value
    case other       => throw IllegalArgumentException(s"no text: $other")

  def number: BigDecimal = this match
    case Num(value) => value
    case other      => throw IllegalArgumentException(s"no number: $other")

  def long: Long = number.toLongExact

  def flag: Boolean = this == Flag(true)

  def items: Vector[Json] = this match
    case Items(values) => values
    case other         => throw IllegalArgumentException(s"no array: $other")

  def isNull: Boolean = this == Null

object Json:
  def parse(text: String): Json = readFromString(text)(using codec)

  def parse(bytes: Array[Byte]): Json = readFromArray(bytes)(using codec)

  private val codec: JsonValueCodec[Json] = new JsonValueCodec[Json]:
    def nullValue: Json = Json.Null
    def encodeValue(value: Json, out: JsonWriter): Unit = throw UnsupportedOperationException("read only")
    def decodeValue(in: JsonReader, default: Json): Json =
      val token = in.nextToken()
      in.rollbackToken()
      token match
        case '"'       => Json.Text(in.readString(null))
        case 't' | 'f' => Json.Flag(in.readBoolean())
        case 'n' =>
          val _ = in.nextToken()
          in.readNullOrError(Json.Null, "expected null")
        case '[' =>
          val _ = in.nextToken()
          val values = Vector.newBuilder[Json]
          if !in.isNextToken(']') then
            in.rollbackToken()
            values += decodeValue(in, default)
            while in.isNextToken(',') do values += decodeValue(in, default)
          Json.Items(values.result())
        case '{' =>
          val _ = in.nextToken()
          val fields = Map.newBuilder[String, Json]
          if !in.isNextToken('}') then
            in.rollbackToken()
            fields += in.readKeyAsString() -> decodeValue(in, default)
            while in.isNextToken(',') do fields += in.readKeyAsString() -> decodeValue(in, default)
          Json.Fields(fields.result())
        case _ => Json.Num(in.readBigDecimal(null))

/** The golden vectors that all gateways share. */
object Vectors:
  def cases(file: String): Vector[Json] =
    val path = Path.of("..", "vectors", s"$file.json")
    Json.parse(Files.readAllBytes(path))("cases").items

object Fixtures:
  val Millis = 1_000_000L

  val settings: Settings = Settings(
    flushIntervalNanos = 1000 * Millis,
    startTimeoutNanos = 10_000 * Millis,
    inferenceTimeoutNanos = 5000 * Millis,
    bufferFramesMax = 500,
    overflowPolicy = OverflowPolicy.DropOldest,
    outboxMessagesMax = 4,
    cpuPasses = 4,
  )

  val startText: Array[Byte] = """{"type":"start"}""".getBytes

  def answerFor(bytes: Long): Inference = Inference(1.5, 7, 1, bytes * 2, "now", bytes)

  /** A masked frame, as a client sends it. */
  def clientFrame(opcode: Int, payload: Array[Byte], fin: Boolean = true, declared: Long = -1): Array[Byte] =
    val length = if declared < 0 then payload.length.toLong else declared
    val bytes = java.nio.ByteBuffer.allocate(payload.length + 14)
    bytes.put(((if fin then 0x80 else 0) | opcode).toByte)
    if length < 126 then bytes.put((0x80 | length).toByte)
    else if length < 65536 then bytes.put((0x80 | 126).toByte).putShort(length.toShort)
    else bytes.put((0x80 | 127).toByte).putLong(length)
    val key = Array[Byte](0x12, 0x34, 0x56, 0x78)
    bytes.put(key)
    payload.indices.foreach(i => bytes.put((payload(i) ^ key(i & 3)).toByte))
    bytes.array.take(bytes.position)
