package plimsoll.http.helidon;

import io.helidon.webserver.WebServer;
import java.util.Map;
import java.util.logging.Level;
import java.util.logging.Logger;
import plimsoll.http.Config;
import plimsoll.http.Metrics;
import plimsoll.http.Shutdown;
import plimsoll.http.Startup;

/** Helidon SE: blocking code on a virtual thread per connection. */
public final class Main {
    /** Kept here, for java.util.logging forgets the level of a logger that nobody holds. */
    private static final Logger HELIDON = Logger.getLogger("io.helidon");

    private Main() {}

    public static void main(String[] args) {
        HELIDON.setLevel(Level.WARNING);
        Config config = Config.fromEnvironment();
        Startup.print(
                "helidon-se",
                config,
                Map.of(
                        "helidon",
                        io.helidon.common.Version.VERSION,
                        "jackson-databind",
                        com.fasterxml.jackson.databind.cfg.PackageVersion.VERSION.toString()));
        Metrics metrics = new Metrics();
        InFlight streams = new InFlight();
        Routes routes = new Routes(config, metrics, streams);
        WebServer server = WebServer.builder()
                .host("0.0.0.0")
                .port(config.port())
                .connectionOptions(options -> options.tcpNoDelay(true))
                // Both protocols are named below, to be counted.
                .protocolsDiscoverServices(false)
                .connectionSelectors(new Connections(metrics, streams).selectors())
                // The end of the process is ours, because it ends with 0.
                .shutdownHook(false)
                .shutdownGracePeriod(config.drainTimeout())
                .routing(routes.routing())
                .build();
        try {
            server.start();
        } catch (RuntimeException e) {
            Shutdown.failed(e);
        }
        if (!server.isRunning()) {
            Shutdown.failed(new IllegalStateException("Helidon has logged why"));
        }
        Shutdown.onSigterm(config, _ -> {
            routes.drain();
            server.stop();
        });
    }
}
