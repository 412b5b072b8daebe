package plimsoll.http.undertow;

import io.undertow.Handlers;
import io.undertow.Version;
import io.undertow.server.HttpHandler;
import io.undertow.server.handlers.GracefulShutdownHandler;
import io.undertow.util.Headers;
import java.io.IOException;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import plimsoll.http.Config;
import plimsoll.http.Metrics;
import plimsoll.http.Shutdown;
import plimsoll.http.Startup;

/** Undertow with its handlers on the I/O threads: none of them blocks. */
public final class Main {
    private Main() {}

    public static void main(String[] args) {
        // jboss-logging would pick Log4j or such if it found it; here it is the JDK's, which writes warnings to stderr.
        System.setProperty("org.jboss.logging.provider", "jdk");
        java.util.logging.Logger.getLogger("").setLevel(java.util.logging.Level.WARNING);
        Config config = Config.fromEnvironment();
        Startup.print(
                "undertow",
                config,
                Map.of(
                        "undertow",
                        Version.getVersionString(),
                        "xnio",
                        org.xnio.Version.VERSION,
                        "jackson-databind",
                        com.fasterxml.jackson.databind.cfg.PackageVersion.VERSION.toString()));
        Metrics metrics = new Metrics();
        AtomicBoolean draining = new AtomicBoolean();
        GracefulShutdownHandler graceful = Handlers.gracefulShutdown(closing(draining, new Routes(metrics).handler()));
        try {
            Listener listener = new Listener(config, metrics, graceful);
            Shutdown.onSigterm(config, timeout -> {
                draining.set(true);
                listener.close();
                graceful.shutdown();
                graceful.awaitShutdown(timeout.toMillis());
            });
        } catch (IOException e) {
            Shutdown.failed(e);
        }
    }

    /** While draining each answer tells the client that the connection ends. */
    private static HttpHandler closing(AtomicBoolean draining, HttpHandler next) {
        return exchange -> {
            exchange.addResponseCommitListener(committed -> {
                if (draining.get()) {
                    committed.setPersistent(false);
                    committed.getResponseHeaders().put(Headers.CONNECTION, "close");
                }
            });
            next.handleRequest(exchange);
        };
    }
}
