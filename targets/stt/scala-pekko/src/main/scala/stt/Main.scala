package stt

import java.util.Properties

import scala.jdk.CollectionConverters.*

import com.typesafe.config.ConfigFactory
import org.apache.pekko.actor.ActorSystem
import sun.misc.Signal

object Main:
  def main(args: Array[String]): Unit = Config.read(name => Option(System.getenv(name))) match
    case Left(bad) =>
      System.err.println(bad.line)
      sys.exit(2)
    case Right(config) =>
      println(startLine)
      start(config)

  private[stt] def start(config: Config): Unit =
    given system: ActorSystem = ActorSystem("stt", settings(config))
    // A system of its own is a selector and a queue of its own: requests do not stand in line with every client's
    // socket, whatever comes in there.
    val back = ActorSystem("inference", settings(config))
    val client = inference.InferenceClient(config)(using back)
    lazy val gateway: Gateway = Gateway(config, client, () => System.nanoTime)
    val acceptor = system.actorOf(Acceptor.props(gateway, HttpFront(gateway)), "acceptor")
    // A handler and not a shutdown hook: with the latter the exit code would be 143.
    val _ = Signal.handle(Signal("TERM"), _ => acceptor ! Acceptor.Drain)
    val _ = Signal.handle(Signal("INT"), _ => acceptor ! Acceptor.Drain)

  /** What `application.conf` cannot know: the threads. */
  private def settings(config: Config): com.typesafe.config.Config =
    val threads = config.workerThreads
    val parallelism = for bound <- List("min", "max")
    yield s"pekko.actor.default-dispatcher.fork-join-executor.parallelism-$bound" -> threads
    ConfigFactory
      .parseMap(parallelism.toMap.asJava)
      .withFallback(ConfigFactory.load())

  /** One line of JSON with the versions of the runtime and the libraries. */
  private def startLine: String =
    val properties = Properties()
    properties.load(getClass.getResourceAsStream("/versions.properties"))
    def field(name: String, value: String) = s""""$name":"$value""""
    def version(name: String) = field(name, properties.getProperty(name))
    val runtime = s"${System.getProperty("java.vm.name")} ${Runtime.version}"
    val libraries = List("pekko", "pekko-http", "jsoniter-scala").map(version).mkString(",")
    val language = field("runtime", runtime) + "," + version("scala")
    s"""{"event":"start","gateway":"scala-pekko",$language,"libraries":{$libraries}}"""
