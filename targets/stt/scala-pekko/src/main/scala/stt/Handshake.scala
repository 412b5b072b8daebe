package stt

import java.nio.charset.StandardCharsets.ISO_8859_1
import java.security.MessageDigest
import java.util.Base64

import scala.util.Try

/** The request that opens a session (RFC 6455, section 4.2), as it is when nothing is unusual about it.
  *
  * A stream of Pekko HTTP for each connection costs a cold JVM 4 to 5 ms of CPU, and that is what makes a burst of
  * connections time out. So the one request that comes in bursts is recognised here; whatever this does not take for a
  * plain, valid handshake goes to Pekko HTTP, which knows what to say to it.
  */
final case class Handshake(key: String, authorization: Option[String]):
  /** The head of the 101. */
  def response: String =
    val sha1 = MessageDigest.getInstance("SHA-1").digest((key + Handshake.Guid).getBytes(ISO_8859_1))
    val accept = Base64.getEncoder.encodeToString(sha1)
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
      s"Sec-WebSocket-Accept: $accept\r\n\r\n"

object Handshake:
  private val Guid = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
  private val KeyBytes = 16
  private val RequestLine = "GET /ws/stt HTTP/1.1"

  /** Headers that must be there, once. */
  private val single = Set("host", "upgrade", "connection", "sec-websocket-key", "sec-websocket-version")

  /** With a body the head is not all of the request. */
  private val unusual = Set("content-length", "transfer-encoding", "expect")

  def parse(head: String): Option[Handshake] =
    val lines = head.stripSuffix("\r\n\r\n").split("\r\n", -1)
    if lines.head != RequestLine then None
    else
      val headers = lines.toSeq.tail.map(header)
      val names = headers.flatten.map(_._1)
      val values = headers.flatten.toMap
      def has(name: String, token: String) =
        values.get(name).exists(_.split(',').exists(_.trim.equalsIgnoreCase(token)))
      val isPlain = headers.forall(_.isDefined) && names.distinct.length == names.length &&
        single.forall(values.contains) && !unusual.exists(values.contains)
      val isUpgrade = has("upgrade", "websocket") && has("connection", "upgrade") && has("sec-websocket-version", "13")
      val key = values.get("sec-websocket-key").filter(isKey)
      key.filter(_ => isPlain && isUpgrade).map(Handshake(_, values.get("authorization")))

  /** A name in lower case, and a value; none for what is no plain header line. */
  private def header(line: String): Option[(String, String)] =
    val colon = line.indexOf(':')
    val name = line.take(colon)
    val value = line.drop(colon + 1).dropWhile(_ == ' ')
    val isClean = value.forall(c => c >= ' ' && c < 0x7f)
    Option.when(colon > 0 && name.forall(c => c.isLetterOrDigit || c == '-') && isClean)(name.toLowerCase -> value)

  private def isKey(text: String): Boolean = Try(Base64.getDecoder.decode(text)).toOption.exists(_.length == KeyBytes)
