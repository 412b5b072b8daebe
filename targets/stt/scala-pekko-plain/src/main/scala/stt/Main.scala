package stt

import java.util.Properties

import scala.concurrent.duration.*
import scala.jdk.CollectionConverters.*
import scala.util.{Failure as Failed, Success}

import com.typesafe.config.ConfigFactory
import org.apache.pekko.Done
import org.apache.pekko.actor.CoordinatedShutdown
import org.apache.pekko.actor.typed.ActorSystem
import org.apache.pekko.actor.typed.scaladsl.AskPattern.*
import org.apache.pekko.http.scaladsl.Http
import org.apache.pekko.http.scaladsl.Http.ServerBinding
import org.apache.pekko.http.scaladsl.server.Route
import org.apache.pekko.util.Timeout
import sun.misc.Signal

object Main:
  private object Terminated extends CoordinatedShutdown.Reason

  /** What the drain may take beyond its own time. */
  private val DrainMargin = 500.millis

  def main(args: Array[String]): Unit = Config.read(sys.env.get) match
    case Left(bad) =>
      System.err.println(bad)
      sys.exit(2)
    case Right(config) =>
      println(startLine)
      start(config)

  private def start(config: Config): Unit =
    val metrics = Metrics(config.maxSessions, config.maxInflightJobs)
    given system: ActorSystem[Gateway.Command] = ActorSystem(Gateway(config, metrics), "stt", settings(config))
    import system.executionContext
    Http()
      .newServerAt("0.0.0.0", config.port)
      .bind(Route.toFunction(Routes(config, metrics)))
      .onComplete:
        case Success(binding) => drainOnSignal(binding, config)
        case Failed(error) =>
          System.err.println(s"PORT=${config.port}: cannot listen: ${error.getMessage}")
          sys.exit(1)

  private def drainOnSignal(binding: ServerBinding, config: Config)(using system: ActorSystem[Gateway.Command]): Unit =
    given Timeout = Timeout(config.drainTimeout + DrainMargin)
    val shutdown = CoordinatedShutdown(system)
    shutdown.addTask(CoordinatedShutdown.PhaseServiceUnbind, "unbind")(() => binding.unbind())
    shutdown.addTask(CoordinatedShutdown.PhaseServiceRequestsDone, "drain"): () =>
      system.ask[Done](Gateway.Command.Drain(_))
    // A handler and not the JVM's shutdown hook, after which the exit code would be 143.
    val _ = Signal.handle(Signal("TERM"), _ => { val _ = shutdown.run(Terminated) })

  /** What `application.conf` cannot know: threads, and durations. */
  private def settings(config: Config): com.typesafe.config.Config =
    val threads = for
      pool <- List("default-dispatcher", "internal-dispatcher")
      bound <- List("min", "max")
    yield s"pekko.actor.$pool.fork-join-executor.parallelism-$bound" -> config.workerThreads
    val durations = List(
      "pekko.coordinated-shutdown.phases.service-requests-done.timeout" -> (config.drainTimeout + DrainMargin),
      // A connection that takes no new requests waits so long for the answers to the others.
      "pekko.http.client.http2.completion-timeout" -> config.inferenceTimeout,
    ).map((name, duration) => name -> s"${duration.toMillis} ms")
    ConfigFactory.parseMap((threads ++ durations).toMap.asJava).withFallback(ConfigFactory.load())

  /** One line of JSON with the versions of the runtime and the libraries. */
  private def startLine: String =
    val properties = Properties()
    properties.load(getClass.getResourceAsStream("/versions.properties"))
    def field(name: String, value: String) = s""""$name":"$value""""
    def version(name: String) = field(name, properties.getProperty(name))
    val runtime = field("runtime", s"${System.getProperty("java.vm.name")} ${Runtime.version}")
    val libraries = List("pekko", "pekko-http", "circe").map(version).mkString(",")
    s"""{$runtime,${version("scala")},"libraries":{$libraries}}"""
