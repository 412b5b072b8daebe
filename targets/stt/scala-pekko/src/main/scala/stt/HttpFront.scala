package stt

import java.nio.charset.StandardCharsets.{ISO_8859_1, UTF_8}
import java.security.MessageDigest

import scala.concurrent.{ExecutionContext, Future}
import scala.util.Failure as Failed

import org.apache.pekko.actor.ActorSystem
import org.apache.pekko.http.scaladsl.Http
import org.apache.pekko.http.scaladsl.model.*
import org.apache.pekko.http.scaladsl.model.headers.*
import org.apache.pekko.stream.scaladsl.{Flow, Sink, Source, TLSPlacebo}
import org.apache.pekko.util.ByteString

/** Section 2 of the contract: what the gateway says over HTTP.
  *
  * Pekko HTTP parses the request, checks the handshake and renders the response, as one stream over bytes in memory:
  * its `serverLayer`. It does not get the socket, for its WebSocket API would keep what the contract asks for to
  * itself: close codes, limits judged by a header alone, the half-closed socket after a close. A connection is for
  * one request, so its stream ends before a session begins. A plain, valid handshake does without it ([[Handshake]]).
  */
final class HttpFront(gateway: => Gateway)(using system: ActorSystem):
  import HttpFront.*

  private given ExecutionContext = system.dispatcher
  private val layer = Http().serverLayer().atop(TLSPlacebo())

  /** The 101 for a request that is nothing but a good handshake, for whose session a place has been taken. */
  def admit(head: ByteString): Option[ByteString] =
    Handshake
      .parse(head.decodeString(ISO_8859_1))
      .filter(handshake => isAuthorized(handshake.authorization) && !gateway.isDraining && gateway.sessions.acquire())
      .map: handshake =>
        gateway.metrics.sessions.increment()
        ByteString(handshake.response)

  /** Answers the request that begins with `head`. */
  def answer(head: ByteString): Future[Answer] =
    var admitted = false
    val handler = Flow[HttpRequest].map: request =>
      val (response, isSession) = respond(request)
      admitted = isSession
      response
    // Every response is strict, so it is one element; and what comes of the first one is all there is to say.
    Source
      .single(head)
      .via(handler.join(layer))
      .runWith(Sink.headOption)
      .map: bytes =>
        val rendered = bytes.getOrElse(ByteString.empty)
        if admitted then Answer.Session(rendered) else Answer.Plain(rendered)
      .andThen:
        case Failed(_) if admitted => gateway.sessions.release()

  /** The response, and whether it opens a session. In that case a place among the sessions has been taken. */
  private def respond(request: HttpRequest): (HttpResponse, Boolean) =
    request.uri.path.toString match
      case "/ws/stt" if request.method == HttpMethods.GET =>
        request.attribute(AttributeKeys.webSocketUpgrade) match
          case None => (upgradeRequired, false)
          case Some(_) if !isAuthorized(authorizationOf(request)) => (unauthorized, false)
          case Some(_) if gateway.isDraining => (unavailable, false)
          case Some(_) if !gateway.sessions.acquire() =>
            gateway.metrics.sessionsRejected.increment()
            (unavailable, false)
          case Some(upgrade) =>
            gateway.metrics.sessions.increment()
            // Only the head of this response is ever used; the stream ends before it would run this flow.
            (upgrade.handleMessages(Flow.fromSinkAndSource(Sink.cancelled, Source.empty)), true)
      case "/health" if request.method == HttpMethods.GET =>
        val health = if gateway.isDraining then StatusCodes.ServiceUnavailable else StatusCodes.OK
        (plain(health, if gateway.isDraining then "draining\n" else "ok\n"), false)
      case "/metrics" if request.method == HttpMethods.GET =>
        val text = gateway.metrics.render(gateway.sessions.inUse, gateway.jobs.inUse)
        (plain(StatusCodes.OK, text, prometheusText), false)
      case _ => (plain(StatusCodes.NotFound, "not found\n"), false)

  private val token = gateway.config.authToken.map(_.getBytes(UTF_8))

  private def authorizationOf(request: HttpRequest): Option[String] =
    request.headers.find(_.is("authorization")).map(_.value)

  private def isAuthorized(authorization: Option[String]): Boolean = token.forall: expected =>
    authorization.filter(_.startsWith(Bearer)).exists: value =>
      // Compares in a time that does not tell how much of it is right.
      MessageDigest.isEqual(value.drop(Bearer.length).getBytes(UTF_8), expected)

object HttpFront:
  /** What to write to the socket, and what comes then. */
  enum Answer:
    /** The connection is over. */
    case Plain(bytes: ByteString)

    /** The head of a 101, after which a session begins. */
    case Session(head: ByteString)

  private val Bearer = "Bearer "
  private val prometheusText =
    ContentType(MediaTypes.`text/plain`.withParams(Map("version" -> "0.0.4")), HttpCharsets.`UTF-8`)

  private def plain(
      status: StatusCode,
      text: String,
      contentType: ContentType.NonBinary = ContentTypes.`text/plain(UTF-8)`,
  ): HttpResponse = HttpResponse(status, List(Connection("close")), HttpEntity(contentType, text))

  private val upgradeRequired = plain(StatusCodes.UpgradeRequired, "this is a WebSocket\n")
    .addHeader(Upgrade(Vector(UpgradeProtocol("websocket"))))
    .addHeader(RawHeader("Sec-WebSocket-Version", "13"))

  private val unauthorized = plain(StatusCodes.Unauthorized, "the token is wrong\n")
    .addHeader(`WWW-Authenticate`(HttpChallenges.oAuth2("stt")))

  private val unavailable = plain(StatusCodes.ServiceUnavailable, "no room for another session\n")
    .addHeader(`Retry-After`(1))
