package stt.websocket

import java.lang.invoke.MethodHandles
import java.nio.ByteOrder

/** RFC 6455, section 5.3. A key is the four bytes as a little-endian `Int`; 0 is no masking. */
object Masking:
  // Int and Long views of byte arrays compile to plain unaligned loads and stores.
  private val longs = MethodHandles.byteArrayViewVarHandle(classOf[Array[Long]], ByteOrder.LITTLE_ENDIAN).nn

  /** Copies `length` bytes, unmasked; the first one meets the first byte of the key. */
  def copy(source: Array[Byte], from: Int, target: Array[Byte], to: Int, length: Int, key: Int): Unit =
    if key == 0 then System.arraycopy(source, from, target, to, length)
    else
      val wide = (key & 0xffffffffL) | (key.toLong << 32)
      var i = 0
      while i <= length - 8 do
        longs.set(target, to + i, (longs.get(source, from + i): Long) ^ wide)
        i += 8
      while i < length do
        target(to + i) = (source(from + i) ^ (key >>> ((i & 3) * 8))).toByte
        i += 1

  /** The key for a payload of which `skipped` bytes have been unmasked already. */
  def rotated(key: Int, skipped: Int): Int = Integer.rotateRight(key, (skipped & 3) * 8)
