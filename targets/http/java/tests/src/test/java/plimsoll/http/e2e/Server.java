package plimsoll.http.e2e;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/** The target under test, as a process: its {@code run.sh}, with variables. */
final class Server implements AutoCloseable {
    /** The folder of the target. Tests run in the folder of their module. */
    static final Path FOLDER = Path.of("..", "..", System.getProperty("plimsoll.target", "none"))
            .toAbsolutePath()
            .normalize();

    private static final Duration START_MAX = Duration.ofSeconds(30);
    private static final Duration END_MAX = Duration.ofSeconds(20);

    private static Server shared;

    private final Process process;
    private final int port;
    private final Path output;

    private Server(Process process, int port, Path output) {
        this.process = process;
        this.port = port;
        this.output = output;
    }

    /** One server for all tests that do not end it. */
    static synchronized Server shared() throws Exception {
        if (shared == null) {
            Server server = start(Map.of());
            Runtime.getRuntime().addShutdownHook(new Thread(server::close));
            shared = server;
        }
        return shared;
    }

    /** Starts a server and waits until it is ready. */
    static Server start(Map<String, String> variables) throws Exception {
        int port = freePort();
        Server server = launch(port, variables);
        long deadline = System.nanoTime() + START_MAX.toNanos();
        while (!server.isReady()) {
            if (!server.process.isAlive() || System.nanoTime() > deadline) {
                server.close();
                throw new AssertionError("the server did not get ready: " + server.output());
            }
            Thread.sleep(20);
        }
        return server;
    }

    /** Starts a server that need not get ready. */
    static Server launch(int port, Map<String, String> variables) throws IOException {
        Path output = Files.createTempFile("plimsoll-http", ".log");
        ProcessBuilder builder = new ProcessBuilder("sh", "run.sh")
                .directory(FOLDER.toFile())
                .redirectErrorStream(true)
                .redirectOutput(output.toFile());
        builder.environment().put("PORT", Integer.toString(port));
        builder.environment().putAll(variables);
        return new Server(builder.start(), port, output);
    }

    static int freePort() throws IOException {
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            return socket.getLocalPort();
        }
    }

    private boolean isReady() {
        try (Wire wire = connect()) {
            return wire.get("/healthz").status() == 200;
        } catch (IOException _) {
            return false;
        }
    }

    int port() {
        return port;
    }

    Wire connect() throws IOException {
        return new Wire(port);
    }

    /** What the process wrote, on stdout and stderr. */
    String output() throws IOException {
        return Files.readString(output);
    }

    /** SIGTERM. */
    void terminate() {
        process.destroy();
    }

    int exitCode() throws InterruptedException {
        if (!process.waitFor(END_MAX.toMillis(), TimeUnit.MILLISECONDS)) {
            throw new AssertionError("the server did not end");
        }
        return process.exitValue();
    }

    @Override
    public void close() {
        process.destroyForcibly();
        try {
            process.waitFor();
            Files.deleteIfExists(output);
        } catch (InterruptedException _) {
            Thread.currentThread().interrupt();
        } catch (IOException e) {
            System.err.println("a log stays behind: " + e);
        }
    }

    /** Whether the target's manifest names this conformance case as a deviation. */
    static boolean deviatesIn(String conformanceCase) throws IOException {
        return manifest().contains("\n\"" + conformanceCase + "\" = ");
    }

    static boolean speaksHttp2() throws IOException {
        return manifest().contains("\nprotocols = [\"h1\", \"h2c\"]\n");
    }

    private static String manifest() throws IOException {
        return Files.readString(FOLDER.resolve("target.toml"));
    }
}
