package stt.websocket

import java.nio.ByteBuffer
import java.nio.CharBuffer
import java.nio.charset.StandardCharsets.UTF_8

import stt.session.AudioBuffer.FrameBytes

/** The client's half of a WebSocket (RFC 6455) for a session that speaks section 3 of the contract.
  *
  * It judges a message as early as its header allows, so it never holds more than a start message (64 KiB at most),
  * one frame of audio and one control frame, whatever a client declares. A frame of audio that lies whole in what was
  * read is not copied here: the sink gets it where it is, still masked.
  */
final class FrameDecoder(sink: FrameDecoder.Sink):
  import FrameDecoder.*

  private var started = false

  private val header = new Array[Byte](HeaderBytesMax)
  private var headerBytes = 0

  /** Of the frame whose payload is being read. */
  private var opcode = 0
  private var fin = false
  private var key = 0
  private var payloadBytes = 0
  private var payloadRead = 0
  private var inPayload = false

  /** Of the message that is in fragments, or 0. */
  private var messageOpcode = 0
  private var messageBytes = 0

  private var text = Array.emptyByteArray
  private var audio = Array.emptyByteArray
  private val control = new Array[Byte](ControlBytesMax)

  /** Takes in what was read. After anything but [[Progress.More]] the decoder is done. */
  def feed(bytes: Array[Byte], from: Int, until: Int): Progress =
    var at = from
    var progress: Progress = Progress.More
    while (progress eq Progress.More) && (at < until || (inPayload && payloadBytes == 0)) do
      if inPayload then
        val length = math.min(payloadBytes - payloadRead, until - at)
        store(bytes, at, length)
        at += length
        if payloadRead == payloadBytes then progress = endOfFrame()
      else if headerBytes == 0 && isWholeFrame(bytes, at, until) then
        progress = progressOf(sink.frame(bytes, at + WholeHeaderBytes, int(bytes, at + 4)))
        at += WholeHeaderBytes + FrameBytes
      else
        header(headerBytes) = bytes(at)
        headerBytes += 1
        at += 1
        progress = onHeaderByte()
    progress

  /** What nearly all frames are: audio, unfragmented, and whole in what was read. */
  private def isWholeFrame(bytes: Array[Byte], at: Int, until: Int): Boolean =
    started && messageOpcode == 0 && until - at >= WholeHeaderBytes + FrameBytes &&
      bytes(at) == (Fin | Binary).toByte && bytes(at + 1) == (Masked | Length16).toByte &&
      bytes(at + 2) == (FrameBytes >> 8).toByte && bytes(at + 3) == FrameBytes.toByte

  /** Judges what there is of the header, and begins the payload when it is all there. */
  private def onHeaderByte(): Progress =
    if headerBytes < 2 then Progress.More
    else
      val shortLength = header(1) & 0x7f
      val lengthBytes = if shortLength == Length16 then 2 else if shortLength == Length64 then 8 else 0
      val violation =
        if headerBytes == 2 then judgeStart(shortLength)
        else None
      violation match
        case Some(reason)                          => Progress.Violation(reason)
        case None if headerBytes < 2 + lengthBytes => Progress.More
        case None =>
          val length = lengthBytes match
            case 0 => shortLength.toLong
            case 2 => ByteBuffer.wrap(header).getShort(2) & 0xffffL
            case _ => ByteBuffer.wrap(header).getLong(2)
          judgeLength(length) match
            case Some(reason) => Progress.Violation(reason)
            case None =>
              if headerBytes == 2 + lengthBytes + 4 then beginPayload(length.toInt, int(header, 2 + lengthBytes))
              Progress.More

  /** What the first two bytes tell. */
  private def judgeStart(shortLength: Int): Option[CloseReason] =
    opcode = header(0) & 0x0f
    fin = (header(0) & Fin) != 0
    val reserved = (header(0) & 0x70) != 0
    val unmasked = (header(1) & Masked) == 0
    val broken = opcode match
      case _ if reserved || unmasked => true
      case Continuation              => messageOpcode == 0
      case Text | Binary             => messageOpcode != 0
      case Close | Ping | Pong       => !fin || shortLength > ControlBytesMax
      case _                         => true
    Option.when(broken)(CloseReason.Protocol)

  /** What the declared length tells, before a byte of the payload is read. */
  private def judgeLength(length: Long): Option[CloseReason] =
    if length < 0 || length > MessageBytesMax then Some(CloseReason.TooLarge)
    else if isControl then None
    else
      val total = messageBytes + length
      val message = if opcode == Continuation then messageOpcode else opcode
      if total > MessageBytesMax then Some(CloseReason.TooLarge)
      else if (message == Text) == started then Some(CloseReason.Protocol)
      else if message == Binary && (total > FrameBytes || (fin && total != FrameBytes)) then Some(CloseReason.FrameSize)
      else None

  private def beginPayload(length: Int, maskingKey: Int): Unit =
    key = maskingKey
    payloadBytes = length
    payloadRead = 0
    inPayload = true
    if !isControl then
      if opcode != Continuation then messageOpcode = opcode
      if messageOpcode == Text then text = java.util.Arrays.copyOf(text, messageBytes + length)
      else if audio.isEmpty then audio = new Array[Byte](FrameBytes)

  private def store(bytes: Array[Byte], at: Int, length: Int): Unit =
    val target = if isControl then control else if messageOpcode == Text then text else audio
    val offset = if isControl then payloadRead else messageBytes + payloadRead
    Masking.copy(bytes, at, target, offset, length, Masking.rotated(key, payloadRead))
    payloadRead += length

  private def endOfFrame(): Progress =
    inPayload = false
    headerBytes = 0
    opcode match
      case Ping =>
        sink.ping(control.take(payloadBytes))
        Progress.More
      case Pong  => Progress.More
      case Close => closed(control.take(payloadBytes))
      case _ =>
        messageBytes += payloadBytes
        if fin then endOfMessage() else Progress.More

  private def endOfMessage(): Progress =
    val wasText = messageOpcode == Text
    messageOpcode = 0
    messageBytes = 0
    if wasText then
      val message = text
      text = Array.emptyByteArray
      started = true
      progressOf(sink.start(message))
    else progressOf(sink.frame(audio, 0, 0))

  private def closed(payload: Array[Byte]): Progress =
    val legal = payload.length match
      case 0 => true
      case 1 => false
      case _ =>
        isLegalCode(ByteBuffer.wrap(payload).getShort(0) & 0xffff) && isUtf8(payload.drop(2))
    if legal then Progress.Closed(payload) else Progress.Violation(CloseReason.Protocol)

  private def isControl: Boolean = (opcode & 0x8) != 0

object FrameDecoder:
  /** What the decoder finds. `None` when the session goes on. */
  trait Sink:
    /** The first message, a text. */
    def start(text: Array[Byte]): Option[CloseReason]

    /** A frame of audio at `offset`, masked with `key` (see [[Masking]]). The array is only lent. */
    def frame(source: Array[Byte], offset: Int, key: Int): Option[CloseReason]

    def ping(payload: Array[Byte]): Unit

  enum Progress:
    case More
    case Violation(reason: CloseReason)

    /** The client's close, to be answered with the same payload. */
    case Closed(payload: Array[Byte])

  /** Most that a message may declare as its length. */
  final val MessageBytesMax = 64 * 1024

  private final val Fin = 0x80
  private final val Masked = 0x80
  private final val Continuation = 0x0
  private final val Text = 0x1
  private final val Binary = 0x2
  private final val Close = 0x8
  private final val Ping = 0x9
  private final val Pong = 0xa
  private final val Length16 = 126
  private final val Length64 = 127
  private final val ControlBytesMax = 125
  private final val HeaderBytesMax = 14
  private final val WholeHeaderBytes = 8

  private val more: Progress = Progress.More

  private def progressOf(violation: Option[CloseReason]): Progress =
    if violation.isEmpty then more else Progress.Violation(violation.get)

  private def int(bytes: Array[Byte], at: Int): Int =
    (bytes(at) & 0xff) | (bytes(at + 1) & 0xff) << 8 | (bytes(at + 2) & 0xff) << 16 | (bytes(at + 3) & 0xff) << 24

  /** Codes that an endpoint may send: RFC 6455, section 7.4, and the registry's later ones. */
  private def isLegalCode(code: Int): Boolean =
    (code >= 1000 && code <= 1014 && code != 1004 && code != 1005 && code != 1006) || (code >= 3000 && code <= 4999)

  private def isUtf8(bytes: Array[Byte]): Boolean =
    val chars = CharBuffer.allocate(bytes.length + 1)
    !UTF_8.newDecoder().decode(ByteBuffer.wrap(bytes), chars, true).isError
