package plimsoll.stt;

import io.helidon.webserver.WebServer;

/** Reads the configuration, serves until SIGTERM or SIGINT, drains. */
final class Main {
    private static final int EXIT_FAILURE = 1;
    private static final int EXIT_BAD_CONFIG = 2;

    private Main() {}

    public static void main(String[] args) {
        Config config;
        try {
            config = Config.read(System::getenv);
        } catch (ConfigException e) {
            System.err.println(e.getMessage());
            System.exit(EXIT_BAD_CONFIG);
            return;
        }
        System.out.println(startLine());
        Gateway gateway = new Gateway(Shared.of(config));
        WebServer server = gateway.server().start();
        if (!server.isRunning()) {
            // Helidon has logged why.
            System.exit(EXIT_FAILURE);
        }
        Runtime.getRuntime().addShutdownHook(Thread.ofPlatform().name("drain").unstarted(() -> drain(gateway)));
    }

    private static String startLine() {
        return """
                {"name":"java-helidon-plain","runtime":"%s %s","libraries":{"helidon":"%s","jackson-databind":"%s"}}""".formatted(
                        System.getProperty("java.vm.name"),
                        Runtime.version(),
                        io.helidon.common.Version.VERSION,
                        com.fasterxml.jackson.databind.cfg.PackageVersion.VERSION);
    }

    /** Runs when the JVM has been told to end. It ends here, with 0: by itself the JVM would report the signal. */
    private static void drain(Gateway gateway) {
        try {
            gateway.drain();
        } catch (InterruptedException _) {
            Thread.currentThread().interrupt();
        }
        Runtime.getRuntime().halt(0);
    }
}
