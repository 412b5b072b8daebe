package plimsoll.http.e2e;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.time.Instant;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.util.List;
import java.util.Random;
import java.util.zip.CRC32;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Each route, on a connection of its own. */
class RoutesTest {
    private static final int OVER_THE_LIMIT = 1_048_577;

    private Wire wire;

    @BeforeEach
    void connect() throws Exception {
        wire = Server.shared().connect();
    }

    @AfterEach
    void close() throws Exception {
        wire.close();
    }

    static String expectedSum(byte[] body) {
        CRC32 crc = new CRC32();
        crc.update(body);
        return "%08x %d".formatted(crc.getValue(), body.length);
    }

    static byte[] randomBody(int length) {
        byte[] body = new byte[length];
        new Random(length).nextBytes(body);
        return body;
    }

    @ParameterizedTest
    @ValueSource(strings = {"/", "/healthz", "/?a=b", "/healthz?x", "/?"})
    void okIsTwoBytes(String path) throws Exception {
        Wire.Answer answer = wire.get(path);
        assertEquals(200, answer.status());
        assertEquals("ok", answer.text());
        assertTrue(answer.field("content-type").startsWith("text/plain"), answer.toString());
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 15, 16, 17, 65_536, 1_048_576})
    void bytesAreThePattern(int size) throws Exception {
        Wire.Answer answer = wire.get("/bytes/" + size + "?q=1");
        assertEquals(200, answer.status());
        assertEquals("application/octet-stream", answer.field("content-type"));
        assertEquals("0123456789abcdef".repeat(size / 16 + 1).substring(0, size), answer.text());
    }

    @ParameterizedTest
    @CsvSource({"0,true", "1,false", "42,true", "9007199254740991,false"})
    void jsonIsTheItem(long id, boolean even) throws Exception {
        Wire.Answer answer = wire.get("/json/" + id);
        assertEquals(200, answer.status());
        assertTrue(answer.field("content-type").startsWith("application/json"), answer.toString());
        assertEquals("{\"id\":%d,\"name\":\"item %d\",\"even\":%b}".formatted(id, id, even), answer.text());
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1, 9, 1024, 100_000, 1_048_576})
    void sumIsOfTheBody(int length) throws Exception {
        byte[] body = randomBody(length);
        Wire.Answer answer = wire.post("/sum", body);
        assertEquals(200, answer.status());
        assertTrue(answer.field("content-type").startsWith("text/plain"), answer.toString());
        assertEquals(expectedSum(body), answer.text());
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "/nothing",
                "/bytes/",
                "/bytes/0",
                "/bytes/01",
                "/bytes/+1",
                "/bytes/-1",
                "/bytes/1048577",
                "/bytes/99999999999999999999",
                "/bytes/1x",
                "/json/",
                "/json/007",
                "/json/x",
                "/json/9007199254740992",
            })
    void unknownPathsAre404AndTheConnectionLives(String path) throws Exception {
        assertEquals(404, wire.get(path).status());
        assertEquals("ok", wire.get("/").text());
    }

    @ParameterizedTest
    @CsvSource({"GET,/sum", "DELETE,/", "PUT,/bytes/5", "POST,/", "POST,/json/1", "BREW,/"})
    void wrongMethodsAreRefusedAndTheConnectionLives(String method, String path) throws Exception {
        wire.send(method + " " + path + " HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n");
        int status = wire.receive().status();
        assertTrue(List.of(404, 405, 501).contains(status), "status " + status);
        assertEquals("ok", wire.get("/").text());
    }

    @ParameterizedTest
    @ValueSource(strings = {"/", "/bytes/5", "/bytes/1048576", "/json/7", "/healthz"})
    void headHasTheSameFieldsAndNoBody(String path) throws Exception {
        Wire.Answer get = wire.get(path);
        Wire.Answer head = wire.head(path);
        assertEquals(200, head.status());
        assertEquals(get.field("content-length"), head.field("content-length"));
        assertEquals(get.field("content-type"), head.field("content-type"));
        assertEquals(get.fields().keySet(), head.fields().keySet());
        // A body would be read as the next answer's status line.
        assertEquals("ok", wire.get("/").text());
    }

    @Test
    void answersHaveADateAndAreNeverChunked() throws Exception {
        for (String path : List.of("/", "/bytes/100000", "/json/3", "/nothing")) {
            Wire.Answer answer = wire.get(path);
            Instant date = ZonedDateTime.parse(answer.field("date"), DateTimeFormatter.RFC_1123_DATE_TIME)
                    .toInstant();
            assertTrue(Duration.between(date, Instant.now()).abs().toSeconds() <= 5, answer.field("date"));
            assertFalse(answer.fields().containsKey("transfer-encoding"), path);
        }
    }

    @Test
    void bodyOverTheLimitIsRefused() throws Exception {
        String head = "POST /sum HTTP/1.1\r\nHost: x\r\nContent-Length: " + OVER_THE_LIMIT + "\r\n\r\n";
        assertRefused(head, new byte[OVER_THE_LIMIT]);
    }

    @Test
    void chunkedBodyOverTheLimitIsRefused() throws Exception {
        String head = "POST /sum HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
        byte[] chunks = ("100000\r\n" + "a".repeat(0x100000) + "\r\n1\r\na\r\n0\r\n\r\n").getBytes(US_ASCII);
        assertRefused(head, chunks);
    }

    private void assertRefused(String head, byte[] body) throws Exception {
        try {
            wire.send(head);
            wire.send(body);
        } catch (java.io.IOException _) {
            // The server may close before it has read all.
        }
        List<Integer> statuses = wire.statusesUntilClose(2000);
        assertTrue(statuses.isEmpty() || statuses.equals(List.of(413)), "statuses " + statuses);
        try (Wire other = Server.shared().connect()) {
            assertEquals("ok", other.get("/").text());
        }
    }

    @Test
    void metricsCount() throws Exception {
        try (Server server = Server.start(java.util.Map.of("WORKER_THREADS", "2"));
                Wire reader = server.connect()) {
            Wire.Answer before = reader.get("/metrics");
            assertTrue(before.field("content-type").startsWith("text/plain"), before.toString());
            Wire[] wires = new Wire[10];
            for (int i = 0; i < wires.length; i++) {
                wires[i] = server.connect();
                for (int k = 0; k < 5; k++) {
                    assertEquals("ok", wires[i].get("/").text());
                }
            }
            Wire.Answer during = reader.get("/metrics");
            assertEquals(10, metric(during, "http_connections_accepted_total") - accepted(before));
            assertEquals(51, metric(during, "http_requests_total") - metric(before, "http_requests_total"));
            assertEquals(11, metric(during, "http_connections_open"));
            for (Wire each : wires) {
                each.close();
            }
            long deadline = System.nanoTime() + Duration.ofSeconds(5).toNanos();
            while (metric(reader.get("/metrics"), "http_connections_open") != 1) {
                assertTrue(System.nanoTime() < deadline, "closed connections stay in the gauge");
                Thread.sleep(20);
            }
        }
    }

    private static long accepted(Wire.Answer answer) {
        return metric(answer, "http_connections_accepted_total");
    }

    private static long metric(Wire.Answer answer, String name) {
        return answer.text()
                .lines()
                .filter(line -> line.startsWith(name + " "))
                .mapToLong(line -> Long.parseLong(line.substring(name.length() + 1)))
                .findFirst()
                .orElseThrow(() -> new AssertionError("no " + name + " in " + answer.text()));
    }
}
