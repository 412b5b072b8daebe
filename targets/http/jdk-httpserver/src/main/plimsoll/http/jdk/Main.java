package plimsoll.http.jdk;

import com.sun.net.httpserver.HttpContext;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.concurrent.Executor;
import java.util.concurrent.Executors;
import plimsoll.http.Config;
import plimsoll.http.Counts;
import plimsoll.http.Routes;
import plimsoll.http.Start;

/** Reads the configuration, serves until SIGTERM or SIGINT, drains. */
public final class Main {
    private static final int BACKLOG = 65_535;

    private Main() {}

    public static void main(String[] arguments) {
        Config config = Config.readOrExit();
        String mode = arguments.length == 1 ? arguments[0] : "";
        if (!mode.equals("vt") && !mode.equals("pool")) {
            System.err.println("jdk-httpserver: the only argument is the mode: vt or pool");
            System.exit(2);
        }
        try {
            HttpServer server = HttpServer.create(new InetSocketAddress("0.0.0.0", config.port()), BACKLOG);
            server.setExecutor(executor(mode, config.workers()));
            InFlight inFlight = new InFlight();
            // The library knows no connections that a program could count.
            Routes routes = new Routes(new Counts(false));
            HttpContext context = server.createContext("/", new Handler(routes, config.maxBodyBytes(), inFlight));
            context.getFilters().add(new Strict(inFlight));
            Start.print("com.sun.net.httpserver", mode, config);
            Drain drain = new Drain(server, inFlight, config.drainWaitMs());
            Runtime.getRuntime()
                    .addShutdownHook(Thread.ofPlatform().name("drain").unstarted(drain));
            server.start();
        } catch (IOException e) {
            System.err.println("jdk-httpserver: cannot listen on port " + config.port() + ": " + e.getMessage());
            System.exit(1);
        }
    }

    private static Executor executor(String mode, int workers) {
        if (mode.equals("vt")) {
            return Executors.newVirtualThreadPerTaskExecutor();
        }
        // A thread is taken from the first byte of a request to the last of its answer, so slow clients hold many.
        int threads = Integer.getInteger("plimsoll.pool_threads", 256 * workers);
        return Executors.newFixedThreadPool(threads);
    }
}
