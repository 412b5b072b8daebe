package stt.inference

import scala.concurrent.Future

import org.apache.pekko.actor.ActorSystem
import org.apache.pekko.http.scaladsl.ClientTransport
import org.apache.pekko.http.scaladsl.Http.OutgoingConnection
import org.apache.pekko.http.scaladsl.settings.ClientConnectionSettings
import org.apache.pekko.stream.scaladsl.Flow
import org.apache.pekko.util.ByteString

/** TCP for one HTTP/2 connection, with an eye on the frames that the server sends.
  *
  * Pekko HTTP 1.3 does not tell of a RST_STREAM that comes before the response: it says GOAWAY to the server and
  * never ends the request. So the resets are read here, on their way in. A frame's header is nine bytes: length (3),
  * type, flags, stream (4).
  */
private final class ResetWatch(onReset: Int => Unit) extends ClientTransport:
  import ResetWatch.*

  private val header = new Array[Byte](HeaderBytes)
  private var headerBytes = 0
  private var payloadLeft = 0

  def connectTo(host: String, port: Int, settings: ClientConnectionSettings)(implicit
      system: ActorSystem
  ): Flow[ByteString, ByteString, Future[OutgoingConnection]] =
    ClientTransport.TCP
      .connectTo(host, port, settings)
      .map: bytes =>
        scan(bytes.toArrayUnsafe())
        bytes

  private[inference] def scan(bytes: Array[Byte]): Unit =
    var at = 0
    while at < bytes.length do
      if payloadLeft > 0 then
        val skipped = math.min(payloadLeft, bytes.length - at)
        payloadLeft -= skipped
        at += skipped
      else
        header(headerBytes) = bytes(at)
        headerBytes += 1
        at += 1
        if headerBytes == HeaderBytes then
          headerBytes = 0
          payloadLeft = (header(0) & 0xff) << 16 | (header(1) & 0xff) << 8 | (header(2) & 0xff)
          if header(3) == RstStream then onReset(java.nio.ByteBuffer.wrap(header).getInt(5) & Int.MaxValue)

private object ResetWatch:
  private val HeaderBytes = 9
  private val RstStream = 3
