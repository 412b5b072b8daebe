package plimsoll.stt;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import io.helidon.webserver.WebServer;
import java.io.IOException;
import java.net.ServerSocket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** The gateway over real sockets, without an inference server. */
@Timeout(10)
class GatewayTest {
    private static final String TOKEN = "secret";
    private static final int MESSAGE_BYTES_MAX = 64 * 1024;
    private static final byte[] START = "{\"type\":\"start\"}".getBytes(StandardCharsets.UTF_8);

    private final HttpClient client = HttpClient.newHttpClient();
    private int port;
    private WebServer server;

    @BeforeEach
    void start() throws IOException {
        try (ServerSocket free = new ServerSocket(0)) {
            port = free.getLocalPort();
        }
        Config config = TestConfigs.of("PORT", Integer.toString(port), "MAX_SESSIONS", "1", "AUTH_TOKEN", TOKEN);
        server = new Gateway(Shared.of(config)).server().start();
    }

    @AfterEach
    void stop() {
        server.stop();
        client.close();
    }

    private HttpResponse<String> get(String path) throws IOException, InterruptedException {
        return client.send(
                HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + path))
                        .build(),
                HttpResponse.BodyHandlers.ofString());
    }

    private void awaitNoSession() throws IOException, InterruptedException {
        while (!get("/metrics").body().contains("\nstt_sessions 0\n")) {
            TimeUnit.MILLISECONDS.sleep(10);
        }
    }

    private String refusal(String token) {
        return assertThrows(IOException.class, () -> new RawClient(port, token).close())
                .getMessage();
    }

    static Stream<Arguments> frames() throws IOException {
        return Vectors.of("frames.json");
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("frames")
    void frame(String id, JsonNode vector) throws IOException {
        try (RawClient session = new RawClient(port, TOKEN)) {
            session.send(RawClient.TEXT, START);
            int opcode = vector.get("opcode").asText().equals("text") ? RawClient.TEXT : RawClient.BINARY;
            long length = vector.get("length").asLong();
            if (length <= MESSAGE_BYTES_MAX) {
                session.send(opcode, new byte[(int) length]);
            } else {
                session.header(opcode, length);
            }
            if (vector.get("ok").asBoolean()) {
                session.send(RawClient.PING, new byte[] {7});
                assertEquals(RawClient.PONG, session.answer().opcode(), id);
            } else {
                assertEquals(
                        new RawClient.Answer(
                                RawClient.CLOSE, vector.get("close").asInt()),
                        session.answer(),
                        id);
            }
        }
    }

    @Test
    void theHttpSurface() throws IOException, InterruptedException {
        assertEquals(200, get("/health").statusCode());
        assertEquals(426, get("/ws/stt").statusCode());
        assertEquals(404, get("/").statusCode());
        assertEquals(200, get("/metrics").statusCode());
    }

    @Test
    void anAbortedConnectionFreesItsPlace() throws IOException, InterruptedException {
        try (RawClient first = new RawClient(port, TOKEN)) {
            first.send(RawClient.TEXT, START);
            assertTrue(refusal("wrong").startsWith("HTTP/1.1 401"));
            String full = refusal(TOKEN);
            assertTrue(full.startsWith("HTTP/1.1 503"), full);
            assertTrue(full.contains("Retry-After: 1\r\n"), full);
        }
        awaitNoSession();
        new RawClient(port, TOKEN).close();
    }

    @Test
    void aClosedSessionFreesItsPlace() throws IOException, InterruptedException {
        try (RawClient session = new RawClient(port, TOKEN)) {
            session.send(RawClient.CLOSE, new byte[] {3, (byte) 0xE8});
            assertEquals(new RawClient.Answer(RawClient.CLOSE, 1000), session.answer());
            awaitNoSession();
        }
    }
}
