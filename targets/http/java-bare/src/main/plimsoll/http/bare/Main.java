package plimsoll.http.bare;

import java.io.IOException;
import java.util.Optional;
import plimsoll.http.Config;
import plimsoll.http.Start;

/** Reads the configuration, serves until SIGTERM or SIGINT, drains. */
public final class Main {
    private Main() {}

    public static void main(String[] arguments) {
        Config config = Config.readOrExit();
        Optional<Mode> mode = arguments.length == 1 ? Mode.of(arguments[0]) : Optional.empty();
        if (mode.isEmpty()) {
            System.err.println("java-bare: the only argument is the mode: vt, vt-loop, loop or pt");
            System.exit(2);
        }
        // A connection's own errors end there. Any other thread that dies would leave a server that looks alive.
        Thread.setDefaultUncaughtExceptionHandler((thread, error) -> {
            error.printStackTrace();
            Runtime.getRuntime().halt(1);
        });
        Server server = new Server(config);
        try {
            server.bind();
            Start.print("java-bare", mode.orElseThrow().word, config);
            Runtime.getRuntime()
                    .addShutdownHook(Thread.ofPlatform().name("drain").unstarted(() -> end(server)));
            server.start(mode.orElseThrow());
        } catch (IOException e) {
            System.err.println("java-bare: cannot listen on port " + config.port() + ": " + e.getMessage());
            Runtime.getRuntime().halt(1);
        }
    }

    /** Runs when the JVM has been told to end. It ends here, with 0: by itself the JVM would report the signal. */
    private static void end(Server server) {
        try {
            server.drain();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        Runtime.getRuntime().halt(0);
    }
}
