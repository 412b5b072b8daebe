package plimsoll.http.e2e;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** From start to end of the process. */
class LifeTest {
    @Test
    void printsOneLineThatNamesVersions() throws Exception {
        try (Server server = Server.start(Map.of());
                Wire wire = server.connect()) {
            assertEquals("ok", wire.get("/").text());
            List<String> lines = server.output().lines().toList();
            assertEquals(1, lines.size(), "more than the line: " + lines);
            String line = lines.getFirst();
            assertTrue(line.startsWith("{\"name\":\"" + System.getProperty("plimsoll.target") + "\""), line);
            assertTrue(line.contains("\"libraries\":{\""), line);
        }
    }

    @ParameterizedTest
    @CsvSource({
        "PORT,65536",
        "PORT,x",
        "WORKER_THREADS,0",
        "WORKER_THREADS,two",
        "DRAIN_TIMEOUT_MS,-1",
        "MAX_BODY_BYTES,1.5",
    })
    void badVariablesEndItWithOneLine(String name, String value) throws Exception {
        try (Server server = Server.launch(Server.freePort(), Map.of(name, value))) {
            assertEquals(2, server.exitCode());
            List<String> lines = server.output().lines().toList();
            assertEquals(1, lines.size(), lines.toString());
            assertTrue(lines.getFirst().contains(name), lines.toString());
        }
    }

    @Test
    void portInUseEndsIt() throws Exception {
        try (Server server = Server.launch(Server.shared().port(), Map.of())) {
            assertTrue(server.exitCode() != 0, "it ended with 0");
        }
    }

    @Test
    void requestInFlightIsAnsweredAndTheRestEnds() throws Exception {
        try (Server server = Server.start(Map.of());
                Wire idle = server.connect();
                Wire busy = server.connect()) {
            assertEquals("ok", idle.get("/").text());
            assertEquals("ok", busy.get("/").text());
            busy.send("POST /sum HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n01234");
            Thread.sleep(200);
            long start = System.nanoTime();
            server.terminate();
            Thread.sleep(500);
            assertThrows(IOException.class, () -> server.connect().get("/"), "a new connection is served");
            busy.send("56789");
            Wire.Answer answer = busy.receive();
            assertEquals(
                    RoutesTest.expectedSum("0123456789".getBytes(java.nio.charset.StandardCharsets.US_ASCII)),
                    answer.text());
            assertEquals("close", answer.field("connection").toLowerCase(Locale.ROOT));
            assertEquals(0, server.exitCode());
            assertTrue(System.nanoTime() - start < 4_000_000_000L, "it waited for an idle connection");
            assertTrue(idle.isClosedWithin(1000), "the idle connection is open");
        }
    }

    @Test
    void clientThatNeverEndsIsNotWaitedForLonger() throws Exception {
        try (Server server = Server.start(Map.of("DRAIN_TIMEOUT_MS", "3000"));
                Wire busy = server.connect()) {
            busy.send("POST /sum HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n01234");
            Thread.sleep(200);
            long start = System.nanoTime();
            server.terminate();
            assertEquals(0, server.exitCode());
            long tookMs = (System.nanoTime() - start) / 1_000_000;
            assertTrue(tookMs < 3000, "took " + tookMs + " ms");
        }
    }

    @Test
    void ownLimitOfBodiesIsTaken() throws Exception {
        try (Server server = Server.start(Map.of("MAX_BODY_BYTES", "10", "WORKER_THREADS", "2"));
                Wire fits = server.connect();
                Wire over = server.connect()) {
            assertEquals(200, fits.post("/sum", new byte[10]).status());
            over.send("POST /sum HTTP/1.1\r\nHost: x\r\nContent-Length: 11\r\n\r\n01234567890");
            List<Integer> statuses = over.statusesUntilClose(1000);
            assertTrue(statuses.isEmpty() || statuses.equals(List.of(413)), statuses.toString());
        }
    }
}
