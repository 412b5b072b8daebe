package stt

import java.io.{DataInputStream, OutputStream}
import java.net.{InetAddress, ServerSocket, Socket}
import java.nio.ByteBuffer
import java.nio.charset.StandardCharsets.US_ASCII

import com.typesafe.config.ConfigFactory
import org.apache.pekko.actor.ActorSystem
import org.apache.pekko.http.scaladsl.Http
import org.apache.pekko.http.scaladsl.model.{ContentTypes, HttpEntity, HttpRequest, HttpResponse}
import stt.session.AudioBuffer.FrameBytes

/** A few seconds of the gateway's life in one process, from which the build makes the AOT cache: some sessions,
  * against an inference server that always says the same.
  */
object Rehearsal:
  private val Sessions = 100
  private val FramesPerSession = 150
  private val FrameMs = 10

  def main(args: Array[String]): Unit =
    val ports = Array.fill(2)(ServerSocket(0))
    ports.foreach(_.close())
    val Array(port, inferencePort) = ports.map(_.getLocalPort)
    serveInference(inferencePort)
    val variables = Map(
      "PORT" -> port.toString,
      "INFERENCE_URL" -> s"http://127.0.0.1:$inferencePort",
      "WORKER_THREADS" -> "2",
      "FLUSH_INTERVAL_MS" -> "250",
      "FLUSH_PHASE_JITTER_MS" -> "250",
    )
    Config.read(variables.get).foreach(Main.start)
    val client = Client(port)
    client.awaitHealth()
    val sessions = Vector.fill(Sessions)(client.open())
    for _ <- 1 to FramesPerSession do
      sessions.foreach(_.sendFrame())
      Thread.sleep(FrameMs)
    sessions.foreach(_.close())
    client.get("/metrics")
    sys.exit(0)

  private def serveInference(port: Int): Unit =
    given ActorSystem = ActorSystem(
      "inference",
      ConfigFactory
        .parseString("""pekko.http.server { enable-http2 = on, http2.min-collect-strict-entity-size = 16384 }""")
        .withFallback(ConfigFactory.load()),
    )
    val _ = Http().newServerAt("127.0.0.1", port).bindSync(answer)

  private def answer(request: HttpRequest): HttpResponse =
    val bytes = request.entity.contentLengthOption.getOrElse(0L)
    val body =
      s"""{"rms":1.5,"zero_crossings":7,"checksum":1,"samples":${bytes * 2},"transcript":"now","audio_bytes":$bytes}"""
    HttpResponse(entity = HttpEntity(ContentTypes.`application/json`, body))

  private final class Client(port: Int):
    def awaitHealth(): Unit =
      while scala.util.Try(get("/health")).isFailure do Thread.sleep(20)

    def get(path: String): Unit =
      val socket = request(path, "")
      val _ = socket.getInputStream.readAllBytes()
      socket.close()

    def open(): ClientSession =
      val socket = request(
        "/ws/stt",
        "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n" +
          "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
      )
      val session = ClientSession(socket)
      session.start()
      session

    private def request(path: String, headers: String): Socket =
      val socket = Socket(InetAddress.getLoopbackAddress, port)
      socket.setTcpNoDelay(true)
      socket.getOutputStream.write(s"GET $path HTTP/1.1\r\nHost: localhost\r\n$headers\r\n".getBytes(US_ASCII))
      socket

  private final class ClientSession(socket: Socket):
    private val output: OutputStream = socket.getOutputStream
    private val audio = frame(0x2, new Array(FrameBytes))

    def start(): Unit =
      val reader = Thread: () =>
        val input = DataInputStream(socket.getInputStream)
        while input.read(new Array[Byte](4096)) > 0 do ()
      reader.setDaemon(true)
      reader.start()
      output.write(frame(0x1, """{"type":"start"}""".getBytes(US_ASCII)))

    def sendFrame(): Unit = output.write(audio)

    def close(): Unit = output.write(frame(0x8, Array[Byte](3, 0xe8.toByte)))

    private def frame(opcode: Int, payload: Array[Byte]): Array[Byte] =
      val bytes = ByteBuffer.allocate(payload.length + 8).put((0x80 | opcode).toByte)
      if payload.length < 126 then bytes.put((0x80 | payload.length).toByte)
      else bytes.put((0x80 | 126).toByte).putShort(payload.length.toShort)
      val key = Array[Byte](1, 2, 3, 4)
      bytes.put(key)
      payload.indices.foreach(i => bytes.put((payload(i) ^ key(i & 3)).toByte))
      bytes.array.take(bytes.position)
