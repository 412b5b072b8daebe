package plimsoll.http.jetty;

import java.time.Duration;
import java.util.Map;
import java.util.concurrent.Executors;
import org.eclipse.jetty.http2.server.HTTP2CServerConnectionFactory;
import org.eclipse.jetty.server.HttpConfiguration;
import org.eclipse.jetty.server.HttpConnectionFactory;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.server.handler.GracefulHandler;
import org.eclipse.jetty.server.handler.SizeLimitHandler;
import org.eclipse.jetty.util.thread.QueuedThreadPool;
import plimsoll.http.Config;
import plimsoll.http.Metrics;
import plimsoll.http.Shutdown;
import plimsoll.http.Startup;

/** Jetty on its thread pool ({@code jetty-pool}), or with its handlers on virtual threads ({@code jetty-vt}). */
public final class Main {
    /** Jetty's own 30 s would close connections that the contract keeps. */
    private static final Duration IDLE_TIMEOUT = Duration.ofSeconds(75);

    /** Jetty takes twice this time if a client that has seen the end keeps its half open: with its own second, all of the contract's two. */
    private static final Duration SHUTDOWN_IDLE_TIMEOUT = Duration.ofMillis(750);

    private Main() {}

    public static void main(String[] args) {
        String name = args[0];
        Config config = Config.fromEnvironment();
        Startup.print(
                name,
                config,
                Map.of(
                        "jetty",
                        Server.getVersion(),
                        "jackson-databind",
                        com.fasterxml.jackson.databind.cfg.PackageVersion.VERSION.toString()));
        Metrics metrics = new Metrics();
        RoutesHandler routes = new RoutesHandler(metrics);
        Server server = server(name, config, metrics, routes);
        Shutdown.onSigterm(config, timeout -> {
            routes.drain();
            server.setStopTimeout(timeout.toMillis());
            server.stop();
        });
        try {
            server.start();
        } catch (Exception e) {
            Shutdown.failed(e);
        }
    }

    private static Server server(String name, Config config, Metrics metrics, RoutesHandler routes) {
        QueuedThreadPool threads = new QueuedThreadPool();
        switch (name) {
            case "jetty-pool" -> {}
            case "jetty-vt" -> threads.setVirtualThreadsExecutor(Executors.newVirtualThreadPerTaskExecutor());
            default -> throw new IllegalArgumentException("no such server: " + name);
        }
        Server server = new Server(threads);
        HttpConfiguration http = new HttpConfiguration();
        ServerConnector connector = new CountingConnector(server, config.workers(), metrics, http);
        connector.setPort(config.port());
        connector.setHost("0.0.0.0");
        connector.setIdleTimeout(IDLE_TIMEOUT.toMillis());
        connector.setShutdownIdleTimeout(SHUTDOWN_IDLE_TIMEOUT.toMillis());
        server.addConnector(connector);

        SizeLimitHandler limit = new SizeLimitHandler(config.maxBodyBytes(), -1);
        limit.setHandler(routes);
        server.setHandler(new GracefulHandler(limit));
        return server;
    }

    /** Counts connections as sockets: an upgrade to HTTP/2 is no new one. */
    private static final class CountingConnector extends ServerConnector {
        private final Metrics metrics;

        CountingConnector(Server server, int selectors, Metrics metrics, HttpConfiguration http) {
            super(server, -1, selectors, new HttpConnectionFactory(http), new HTTP2CServerConnectionFactory(http));
            this.metrics = metrics;
        }

        @Override
        protected void onEndPointOpened(org.eclipse.jetty.io.EndPoint endPoint) {
            super.onEndPointOpened(endPoint);
            metrics.opened();
        }

        @Override
        protected void onEndPointClosed(org.eclipse.jetty.io.EndPoint endPoint) {
            metrics.closed();
            super.onEndPointClosed(endPoint);
        }
    }
}
