package stt.websocket

import java.nio.ByteBuffer

import org.apache.pekko.util.ByteString

/** The frames that the gateway sends: unfragmented and unmasked, as a server's are. */
object Frames:
  private val TextOpcode = 0x1
  private val CloseOpcode = 0x8
  private val PongOpcode = 0xa

  def text(payload: Array[Byte]): ByteString = frame(TextOpcode, payload)

  def pong(payload: Array[Byte]): ByteString = frame(PongOpcode, payload)

  /** A close that repeats what the client said, or nothing. */
  def close(payload: Array[Byte]): ByteString = frame(CloseOpcode, payload)

  def close(reason: CloseReason): ByteString =
    close(Array((reason.code >> 8).toByte, reason.code.toByte))

  private def frame(opcode: Int, payload: Array[Byte]): ByteString =
    val bytes = ByteBuffer.allocate(payload.length + 10)
    bytes.put((0x80 | opcode).toByte)
    if payload.length < 126 then bytes.put(payload.length.toByte)
    else if payload.length < 65536 then bytes.put(126.toByte).putShort(payload.length.toShort)
    else bytes.put(127.toByte).putLong(payload.length)
    bytes.put(payload)
    ByteString.fromArrayUnsafe(bytes.array, 0, bytes.position)
