package plimsoll.http.test;

import java.io.IOException;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/** A target as a process of its own, started as Plimsoll starts it, on a free port. */
public final class ServerProcess implements AutoCloseable {
    private static final long READY_MS = 30_000;

    private final Process process;
    private final Path output;
    public final int port;

    private ServerProcess(Process process, Path output, int port) {
        this.process = process;
        this.output = output;
        this.port = port;
    }

    /** Starts it and waits until it is healthy. */
    public static ServerProcess start(String target, Map<String, String> variables) throws Exception {
        ServerProcess server = launch(target, freePort(), variables);
        long end = System.nanoTime() + READY_MS * 1_000_000;
        while (System.nanoTime() < end && server.process.isAlive()) {
            try (Wire wire = new Wire(server.port)) {
                if (wire.get("/healthz").status() == 200) {
                    return server;
                }
            } catch (IOException e) {
                Thread.sleep(20);
            }
        }
        String said = server.output();
        server.close();
        throw new IOException("the server did not become healthy; it said: " + said);
    }

    /** Starts it and does not wait. */
    public static ServerProcess launch(String target, int port, Map<String, String> variables) throws IOException {
        Path output = Files.createTempFile("server", ".log");
        ProcessBuilder builder = new ProcessBuilder(List.of("sh", "run.sh"));
        builder.directory(Path.of("..", target).toFile());
        builder.environment()
                .keySet()
                .removeAll(List.of("PORT", "WORKER_THREADS", "DRAIN_TIMEOUT_MS", "MAX_BODY_BYTES", "JAVA_FLAGS"));
        builder.environment().put("PORT", Integer.toString(port));
        builder.environment().putAll(variables);
        builder.redirectErrorStream(true).redirectOutput(output.toFile());
        return new ServerProcess(builder.start(), output, port);
    }

    public static int freePort() throws IOException {
        try (ServerSocket socket = new ServerSocket(0)) {
            return socket.getLocalPort();
        }
    }

    /** What it has written to stdout and stderr. */
    public String output() throws IOException {
        return Files.readString(output);
    }

    public void terminate() {
        process.toHandle().destroy();
    }

    /** Its exit code, or -1 if it has not ended in time. */
    public int exitCode(long waitMs) throws InterruptedException {
        return process.waitFor(waitMs, TimeUnit.MILLISECONDS) ? process.exitValue() : -1;
    }

    public long residentMib() throws IOException {
        String status = Files.readString(Path.of("/proc/" + process.pid() + "/status"));
        String line = status.lines()
                .filter(text -> text.startsWith("VmRSS:"))
                .findFirst()
                .orElseThrow();
        return Long.parseLong(line.replaceAll("[^0-9]", "")) / 1024;
    }

    public boolean isAlive() {
        return process.isAlive();
    }

    @Override
    public void close() throws IOException {
        process.destroyForcibly();
        try {
            process.waitFor();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        Files.deleteIfExists(output);
    }
}
