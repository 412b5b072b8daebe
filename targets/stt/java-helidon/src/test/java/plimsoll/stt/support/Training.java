package plimsoll.stt.support;

import java.io.DataInputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.net.HttpURLConnection;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import plimsoll.stt.support.FakeInference.Reaction;

/**
 * Runs a gateway for some seconds under a load like its usual one, so that the JVM can record which classes it loads and
 * which methods are hot. {@code build.sh} makes the AOT cache with it. The arguments are the command that starts the gateway.
 */
public final class Training {
    private static final int SESSIONS = 24;
    private static final int FRAMES = 500;
    private static final long FRAME_MILLIS = 10;
    private static final int PORT_TRIES = 500;
    private static final int OK = 200;

    private Training() {}

    public static void main(String[] command) throws Exception {
        int port = freePort();
        // Every hundredth request meets an error, so that errors are no surprise either.
        try (FakeInference inference =
                new FakeInference(1 << 20, n -> n % 100 == 0 ? new Reaction.Status(503, "") : FakeInference.ANSWER)) {
            ProcessBuilder builder = new ProcessBuilder(command).inheritIO();
            builder.environment().put("PORT", Integer.toString(port));
            builder.environment().put("INFERENCE_URL", inference.url().toString());
            builder.environment().put("FLUSH_INTERVAL_MS", "500");
            builder.environment().put("FLUSH_PHASE_JITTER_MS", "500");
            Process gateway = builder.start();
            try {
                awaitHealth(gateway, port);
                load(port);
                get(port, "/metrics");
            } finally {
                gateway.destroy();
                gateway.waitFor();
            }
        }
    }

    private static int freePort() throws IOException {
        try (ServerSocket socket = new ServerSocket(0)) {
            return socket.getLocalPort();
        }
    }

    private static void awaitHealth(Process gateway, int port) throws InterruptedException {
        for (int i = 0; i < PORT_TRIES && gateway.isAlive(); i++) {
            try {
                if (get(port, "/health") == OK) {
                    return;
                }
            } catch (IOException _) {
                // Not yet.
            }
            TimeUnit.MILLISECONDS.sleep(20);
        }
        throw new IllegalStateException("the gateway did not start");
    }

    private static int get(int port, String path) throws IOException {
        HttpURLConnection connection = (HttpURLConnection)
                URI.create("http://127.0.0.1:" + port + path).toURL().openConnection();
        try (var body = connection.getResponseCode() == OK ? connection.getInputStream() : null) {
            if (body != null) {
                body.readAllBytes();
            }
        }
        return connection.getResponseCode();
    }

    private static void load(int port) throws InterruptedException, ExecutionException {
        try (ExecutorService executor = Executors.newVirtualThreadPerTaskExecutor()) {
            List<Callable<Void>> sessions = IntStream.range(0, SESSIONS)
                    .<Callable<Void>>mapToObj(number -> () -> {
                        session(port, number);
                        return null;
                    })
                    .toList();
            for (Future<Void> session : executor.invokeAll(sessions)) {
                session.get();
            }
        }
    }

    private static void session(int port, int number) throws IOException, InterruptedException {
        try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), port)) {
            socket.setTcpNoDelay(true);
            OutputStream out = socket.getOutputStream();
            out.write("""
                    GET /ws/stt HTTP/1.1\r
                    Host: localhost\r
                    Connection: Upgrade\r
                    Upgrade: websocket\r
                    Sec-WebSocket-Version: 13\r
                    Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r
                    \r
                    """.getBytes(StandardCharsets.US_ASCII));
            Thread reader = Thread.ofVirtual().start(() -> readAll(socket));
            out.write(ClientFrames.text("{\"type\":\"start\"}"));
            for (int seq = 1; seq <= FRAMES; seq++) {
                out.write(ClientFrames.binary(Synthetic.frame(number, seq)));
                TimeUnit.MILLISECONDS.sleep(FRAME_MILLIS);
            }
            out.write(ClientFrames.close(1000));
            reader.join();
        }
    }

    private static void readAll(Socket socket) {
        try {
            new DataInputStream(socket.getInputStream()).skipNBytes(Long.MAX_VALUE);
        } catch (IOException _) {
            // The end.
        }
    }
}
