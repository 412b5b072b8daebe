package plimsoll.http.vertx;

import io.vertx.core.DeploymentOptions;
import io.vertx.core.Future;
import io.vertx.core.Vertx;
import io.vertx.core.VertxOptions;
import io.vertx.core.http.HttpServer;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import plimsoll.http.Config;
import plimsoll.http.Metrics;
import plimsoll.http.Shutdown;
import plimsoll.http.Startup;

/** Vert.x with one event loop ({@code vertx-default}), or with one for each worker ({@code vertx-loops}). */
public final class Main {
    private Main() {}

    /** How many event loops there are, and how many of them serve. */
    private record Loops(VertxOptions options, int instances) {
        static Loops of(String name, Config config) {
            return switch (name) {
                case "vertx-default" -> new Loops(new VertxOptions(), 1);
                case "vertx-loops" ->
                    new Loops(new VertxOptions().setEventLoopPoolSize(config.workers()), config.workers());
                default -> throw new IllegalArgumentException("no such server: " + name);
            };
        }
    }

    public static void main(String[] args) {
        String name = args[0];
        Config config = Config.fromEnvironment();
        Startup.print(
                name,
                config,
                Map.of(
                        "vertx",
                        Vertx.class.getPackage().getImplementationVersion(),
                        "netty",
                        io.netty.util.Version.identify().get("netty-codec-http").artifactVersion(),
                        "jackson-core",
                        com.fasterxml.jackson.core.json.PackageVersion.VERSION.toString()));
        Loops loops = Loops.of(name, config);
        Vertx vertx = Vertx.vertx(loops.options());
        Routes routes = new Routes(config, new Metrics());
        List<HttpServer> servers = new CopyOnWriteArrayList<>();
        try {
            vertx.deployVerticle(
                            () -> new ServerVerticle(config, routes, servers),
                            new DeploymentOptions().setInstances(loops.instances()))
                    .await();
        } catch (Exception e) {
            // Vert.x throws what bind met, checked or not.
            Shutdown.failed(e);
        }
        Shutdown.onSigterm(config, timeout -> {
            routes.drain();
            Future.join(servers.stream().map(server -> server.shutdown(timeout)).toList())
                    .await(timeout.toMillis(), TimeUnit.MILLISECONDS);
        });
    }
}
