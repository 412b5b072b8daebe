package plimsoll.stt;

import io.helidon.webserver.WebServer;
import java.util.logging.Level;
import java.util.logging.Logger;
import plimsoll.stt.http.Routes;

/** Reads the configuration, serves until SIGTERM or SIGINT, drains. */
public final class Main {
    private static final int EXIT_FAILURE = 1;
    private static final int EXIT_BAD_CONFIG = 2;

    /** Kept here, for java.util.logging forgets the level of a logger that nobody holds. */
    private static final Logger HELIDON = Logger.getLogger("io.helidon");

    private Main() {}

    public static void main(String[] args) {
        HELIDON.setLevel(Level.WARNING);
        Config config;
        try {
            config = Config.read(System::getenv);
        } catch (ConfigException e) {
            System.err.println(e.getMessage());
            System.exit(EXIT_BAD_CONFIG);
            return;
        }
        System.out.println(Versions.startLine(config));
        Gateway gateway = new Gateway(config);
        WebServer server = Routes.server(gateway).start();
        if (!server.isRunning()) {
            // Helidon has logged why.
            System.exit(EXIT_FAILURE);
        }
        Runtime.getRuntime().addShutdownHook(Thread.ofPlatform().name("drain").unstarted(() -> drain(gateway)));
    }

    /** Runs when the JVM has been told to end. It ends here, with 0: by itself the JVM would report the signal. */
    private static void drain(Gateway gateway) {
        try {
            gateway.drain();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        Runtime.getRuntime().halt(0);
    }
}
