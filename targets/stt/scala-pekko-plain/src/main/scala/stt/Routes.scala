package stt

import scala.concurrent.duration.*

import org.apache.pekko.actor.typed.ActorSystem
import org.apache.pekko.actor.typed.scaladsl.AskPattern.*
import org.apache.pekko.http.scaladsl.model.*
import org.apache.pekko.http.scaladsl.model.headers.`Retry-After`
import org.apache.pekko.http.scaladsl.server.Directives.*
import org.apache.pekko.http.scaladsl.server.directives.Credentials
import org.apache.pekko.http.scaladsl.server.{Directive0, Route}
import org.apache.pekko.util.Timeout

/** Section 2 of the contract: the HTTP surface. */
object Routes:
  /** The guardian answers at once; only a gateway that is far behind its load takes longer. */
  private given Timeout = Timeout(10.seconds)

  private val prometheusText =
    ContentType(MediaTypes.`text/plain`.withParams(Map("version" -> "0.0.4")), HttpCharsets.`UTF-8`)

  def apply(config: Config, metrics: Metrics)(using gateway: ActorSystem[Gateway.Command]): Route = concat(
    path("health")(get(health)),
    path("metrics")(get(complete(HttpEntity(prometheusText, metrics.render)))),
    path("ws" / "stt")(get(webSocket(config))),
  )

  private def health(using gateway: ActorSystem[Gateway.Command]): Route =
    onSuccess(gateway.ask[Boolean](Gateway.Command.IsDraining(_))): isDraining =>
      complete(if isDraining then StatusCodes.ServiceUnavailable else StatusCodes.OK)

  /** The order is the contract's: first whether it is an upgrade at all, then the token, then whether there is room. */
  private def webSocket(config: Config)(using gateway: ActorSystem[Gateway.Command]): Route =
    extractWebSocketUpgrade: _ =>
      authenticated(config.authToken):
        onSuccess(gateway.ask[Gateway.Admission](Gateway.Command.Open(_))):
          case Gateway.Admission.Admitted(session) => handleWebSocketMessages(SessionFlow(session))
          case Gateway.Admission.Draining          => complete(StatusCodes.ServiceUnavailable)
          case Gateway.Admission.Full =>
            complete(HttpResponse(StatusCodes.ServiceUnavailable, List(`Retry-After`(1))))

  private def authenticated(authToken: Option[String]): Directive0 = authToken match
    case None => pass
    case Some(expected) =>
      // `verify` compares in constant time.
      authenticateOAuth2PF("stt", { case token @ Credentials.Provided(_) if token.verify(expected) => () })
        .flatMap(_ => pass)
