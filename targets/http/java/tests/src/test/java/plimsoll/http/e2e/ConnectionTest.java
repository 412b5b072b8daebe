package plimsoll.http.e2e;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What a connection carries: many requests, requests in one write, requests in pieces, chunks. */
class ConnectionTest {
    private static final String GET = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    private static final String CHUNKED_HEAD = "POST /sum HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";

    private Wire wire;

    @BeforeEach
    void connect() throws Exception {
        wire = Server.shared().connect();
    }

    @AfterEach
    void close() throws Exception {
        wire.close();
    }

    private static String sum(String body) {
        return RoutesTest.expectedSum(body.getBytes(ISO_8859_1));
    }

    @Test
    void carriesThreeThousandRequests() throws Exception {
        for (int i = 0; i < 1000; i++) {
            assertEquals("ok", wire.get("/").text());
            assertEquals(
                    "{\"id\":%d,\"name\":\"item %d\",\"even\":%b}".formatted(i, i, i % 2 == 0),
                    wire.get("/json/" + i).text());
            String body = "body " + i;
            assertEquals(sum(body), wire.post("/sum", body.getBytes(ISO_8859_1)).text());
        }
    }

    @Test
    void fiftyInTurnMeetNoDelayOfNagles() throws Exception {
        wire.get("/json/1");
        long start = System.nanoTime();
        for (int i = 0; i < 50; i++) {
            wire.get("/bytes/3000");
        }
        long tookMs = (System.nanoTime() - start) / 1_000_000;
        // A single stall is 40 ms. All 50 would be 2,000.
        assertTrue(tookMs < 1000, "took " + tookMs + " ms");
    }

    @Test
    void closeIsAnsweredAndDone() throws Exception {
        wire.send("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        Wire.Answer answer = wire.receive();
        assertEquals("ok", answer.text());
        assertEquals("close", answer.field("connection").toLowerCase(Locale.ROOT));
        assertTrue(wire.isClosedWithin(1000), "still open");
    }

    @Test
    void http10IsAnsweredAndClosed() throws Exception {
        wire.send("GET / HTTP/1.0\r\n\r\n");
        List<Integer> statuses = wire.statusesUntilClose(1000);
        List<Integer> expected = Server.deviatesIn("keep-alive-http-1-0") ? List.of() : List.of(200);
        assertEquals(expected, statuses);
    }

    @Test
    void sixteenInOneWriteAreAnsweredInOrder() throws Exception {
        StringBuilder requests = new StringBuilder();
        IntStream.rangeClosed(1, 16).forEach(i -> requests.append("GET /bytes/" + i + " HTTP/1.1\r\nHost: x\r\n\r\n"));
        wire.send(requests.toString());
        for (int i = 1; i <= 16; i++) {
            assertEquals("0123456789abcdef".substring(0, i), wire.receive().text());
        }
    }

    @Test
    void getPostGetInOneWrite() throws Exception {
        wire.send(GET + "POST /sum HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc" + GET);
        assertEquals("ok", wire.receive().text());
        assertEquals(sum("abc"), wire.receive().text());
        assertEquals("ok", wire.receive().text());
    }

    @Test
    void closeInTheThirdOfFiveGivesThreeAnswers() throws Exception {
        String close = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        wire.send(GET + GET + close + GET + GET);
        for (int i = 0; i < 3; i++) {
            assertEquals("ok", wire.receive().text());
        }
        assertTrue(wire.isClosedWithin(1000), "a fourth answer, or still open");
    }

    @ParameterizedTest
    @CsvSource({
        "chunked-one, 5|hello|0||, hello",
        "chunked-none, 0||, ''",
        "chunked-many, 3|abc|A|0123456789|00|| , abc0123456789",
        "chunked-extension, 3;name=value|abc|0||, abc",
        "chunked-trailer, 3|abc|0|Trailer-Field: x||, abc",
    })
    void chunks(String name, String chunks, String body) throws Exception {
        wire.send(CHUNKED_HEAD + chunks.replace("|", "\r\n") + GET);
        if (Server.deviatesIn(name)) {
            List<Integer> statuses = wire.statusesUntilClose(1000);
            assertFalse(statuses.contains(200), "no deviation any more: " + statuses);
        } else {
            assertEquals(sum(body), wire.receive().text());
            assertEquals("ok", wire.receive().text());
        }
    }

    @Test
    void thousandChunks() throws Exception {
        wire.send(CHUNKED_HEAD + "1\r\nx\r\n".repeat(1000) + "0\r\n\r\n");
        assertEquals(sum("x".repeat(1000)), wire.receive().text());
    }

    @Test
    void continueIsSentBeforeTheBody() throws Exception {
        wire.send("POST /sum HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n");
        assertEquals(100, wire.receiveAny(false).status());
        wire.send("hello");
        assertEquals(sum("hello"), wire.receive().text());
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                GET,
                "POST /sum HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello",
                CHUNKED_HEAD + "5\r\nhello\r\n0\r\n\r\n"
            })
    void requestsMayBeCutAnywhere(String request) throws Exception {
        String expected = request.startsWith("GET") ? "ok" : sum("hello");
        for (int cut = 1; cut < request.length(); cut++) {
            wire.send(request.substring(0, cut));
            Thread.sleep(2);
            wire.send(request.substring(cut));
            assertEquals(expected, wire.receive().text(), "cut at " + cut);
        }
        for (byte each : request.getBytes(ISO_8859_1)) {
            wire.send(new byte[] {each});
            Thread.sleep(1);
        }
        assertEquals(expected, wire.receive().text(), "byte by byte");
    }

    @Test
    void slowBodyIsSummed() throws Exception {
        wire.send("POST /sum HTTP/1.1\r\nHost: x\r\nContent-Length: 200\r\n\r\n");
        for (int i = 0; i < 200; i++) {
            wire.send("z");
            Thread.sleep(5);
        }
        assertEquals(sum("z".repeat(200)), wire.receive().text());
    }

    @Test
    void slowHeadsDoNotHoldOthersUp() throws Exception {
        Wire[] slow = new Wire[200];
        try {
            for (int i = 0; i < slow.length; i++) {
                slow[i] = Server.shared().connect();
                slow[i].send(i % 2 == 0 ? "GET / HT" : "POST /sum HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhe");
            }
            Thread.sleep(200);
            long start = System.nanoTime();
            try (Wire other = Server.shared().connect()) {
                assertEquals("ok", other.get("/").text());
            }
            assertTrue(System.nanoTime() - start < 1_000_000_000L, "others wait");
        } finally {
            for (Wire each : slow) {
                if (each != null) {
                    each.close();
                }
            }
        }
    }

    @Test
    void clientThatLeavesInMidRequestHurtsNobody() throws Exception {
        for (int i = 0; i < 20; i++) {
            try (Wire leaver = Server.shared().connect()) {
                leaver.send("POST /sum HTTP/1.1\r\nHost: x\r\nContent-Length: 500\r\n\r\nhe");
            }
            try (Wire leaver = Server.shared().connect()) {
                leaver.send("GET /bytes/1048576 HTTP/1.1\r\nHost: x\r\n\r\n".repeat(20));
            }
        }
        assertEquals("ok", wire.get("/").text());
    }

    @Test
    void headOf64KibIsRefused() throws Exception {
        assertHeadIsRefused("GET / HTTP/1.1\r\nHost: x\r\nLong: " + "a".repeat(65_536) + "\r\n\r\n");
    }

    @Test
    void headOfTenThousandFieldsIsRefused() throws Exception {
        String fields =
                IntStream.range(0, 10_000).mapToObj(i -> "f" + i + ": v\r\n").collect(Collectors.joining());
        assertHeadIsRefused("GET / HTTP/1.1\r\nHost: x\r\n" + fields + "\r\n");
    }

    private void assertHeadIsRefused(String head) throws Exception {
        try {
            wire.send(head);
        } catch (java.io.IOException _) {
            // The server may close before it has read all.
        }
        assertFalse(wire.statusesUntilClose(2000).contains(200), "accepted");
    }
}
