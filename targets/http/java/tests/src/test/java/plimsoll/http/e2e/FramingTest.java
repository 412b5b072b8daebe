package plimsoll.http.e2e;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Requests whose end is doubtful are never answered with 200, nor with two answers, save where the manifest says so. */
class FramingTest {
    private static final String HEAD = "POST /sum HTTP/1.1\r\nHost: x\r\n";

    @ParameterizedTest
    @CsvSource({
        "framing-length-and-chunked",
        "framing-two-lengths",
        "framing-length-plus",
        "framing-length-negative",
        "framing-unknown-coding",
        "framing-space-before-colon",
        "framing-no-host",
        "framing-version",
        "chunk-size-of-letters",
    })
    void doubtfulRequestsAreRefused(String name) throws Exception {
        try (Wire wire = Server.shared().connect()) {
            wire.send(request(name));
            List<Integer> statuses = wire.statusesUntilClose(1000);
            boolean refused = statuses.size() <= 1 && !statuses.contains(200);
            assertEquals(!Server.deviatesIn(name), refused, name + " is answered with " + statuses);
        }
        try (Wire wire = Server.shared().connect()) {
            assertEquals("ok", wire.get("/").text());
        }
    }

    private static String request(String name) {
        return switch (name) {
            case "framing-length-and-chunked" ->
                HEAD + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
            case "framing-two-lengths" -> HEAD + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!";
            case "framing-length-plus" -> HEAD + "Content-Length: +5\r\n\r\nhello";
            case "framing-length-negative" -> HEAD + "Content-Length: -1\r\n\r\n";
            case "framing-unknown-coding" -> HEAD + "Transfer-Encoding: rot13\r\n\r\nhello";
            case "framing-space-before-colon" -> HEAD + "Content-Length : 5\r\n\r\nhello";
            case "framing-no-host" -> "GET / HTTP/1.1\r\n\r\n";
            case "framing-version" -> "GET / HTTP/3.7\r\nHost: x\r\n\r\n";
            case "chunk-size-of-letters" -> HEAD + "Transfer-Encoding: chunked\r\n\r\nxyz\r\nhello\r\n0\r\n\r\n";
            default -> throw new IllegalArgumentException(name);
        };
    }
}
