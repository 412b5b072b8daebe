package plimsoll.http.bare;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static plimsoll.http.test.Tests.assertEquals;
import static plimsoll.http.test.Tests.assertTrue;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import plimsoll.http.test.Tests;

/** The parser without sockets: in whole, split at each byte, byte by byte, and what it must refuse. */
final class ParserTests {
    private static final int MOST_BODY_BYTES = 1000;
    private static final String GET = "GET /a HTTP/1.1\r\nHost: x\r\n\r\n";
    private static final String CHUNKED = "POST /sum HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: Chunked\r\n\r\n";

    private ParserTests() {}

    static void addTo(Tests tests) {
        tests.add("parser-shapes", ParserTests::shapes);
        tests.add("parser-split-at-each-byte", ParserTests::splitAtEachByte);
        tests.add("parser-byte-by-byte", ParserTests::byteByByte);
        tests.add("parser-refusals", ParserTests::refusals);
        tests.add("parser-refusals-split", ParserTests::refusalsSplit);
        tests.add("parser-limits", ParserTests::limits);
        tests.add("parser-never-throws", ParserTests::neverThrows);
        tests.add("parser-places", ParserTests::places);
        tests.add("input-grows", ParserTests::inputGrows);
    }

    /** A connection's input and parser, fed by hand. */
    private static final class Feed {
        final Input input = new Input();
        final Parser parser = new Parser(input, MOST_BODY_BYTES);
        final List<String> found = new ArrayList<>();
        private boolean refused;

        void give(byte[] bytes, int from, int to) {
            int at = from;
            while (at < to && !refused) {
                ByteBuffer room = input.room();
                int count = Math.min(room.remaining(), to - at);
                assertTrue(count > 0, "no room");
                room.put(bytes, at, count);
                input.filled(count);
                at += count;
                for (Item item = parser.next(); item != null; item = refused ? null : parser.next()) {
                    take(item);
                }
            }
        }

        private void take(Item item) {
            found.add(
                    switch (item) {
                        case Item.Continue() -> "continue";
                        case Item.Refusal(int status) -> Integer.toString(status);
                        case Item.Request(var method, var path, var body, var close, var keep) ->
                            method + " " + path + (body == null ? "" : " " + body) + (close ? " close" : "")
                                    + (keep ? " keep" : "");
                    });
            refused = item instanceof Item.Refusal;
        }
    }

    private static List<String> parse(String text, int... cuts) {
        byte[] bytes = text.getBytes(ISO_8859_1);
        Feed feed = new Feed();
        int from = 0;
        for (int cut : cuts) {
            feed.give(bytes, from, cut);
            from = cut;
        }
        feed.give(bytes, from, bytes.length);
        return feed.found;
    }

    /** Requests, and what is to be found in them. */
    private static String[][] wholes() {
        return new String[][] {
            {GET, "GET /a"},
            {GET + GET, "GET /a", "GET /a"},
            {"\r\n\r\n" + GET, "GET /a"},
            {"HEAD /b?c=d?e HTTP/1.1\r\nhOST:x\r\n\r\n", "HEAD /b"},
            {"GET http://x/b/c?d HTTP/1.1\r\nHost: \t x \t\r\n\r\n", "GET /b/c"},
            {"GET http://x HTTP/1.1\r\nHost: x\r\n\r\n", "GET /"},
            {"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", "OPTIONS *"},
            {"M-SEARCH /\u007e HTTP/1.7\r\nHost:\r\nA: \u00e4\tb\r\n\r\n", "M-SEARCH /~"},
            {"GET / HTTP/1.1\r\nHost: x\r\nConnection: te , CLOSE\r\n\r\n", "GET / close"},
            {"GET / HTTP/1.1\r\nHost: x\r\nConnection: te\r\nConnection: close\r\n\r\n", "GET / close"},
            {"GET / HTTP/1.1\r\nHost: x\r\nConnection: closed\r\n\r\n", "GET /"},
            {"GET / HTTP/1.0\r\n\r\n", "GET / close"},
            {"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", "GET / keep"},
            {"GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n", "GET / close"},
            {
                "POST /sum HTTP/1.1\r\nHost: x\r\ncontent-length: 9\r\n\r\n123456789" + GET,
                "POST /sum cbf43926 9",
                "GET /a"
            },
            {"POST /sum HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n" + GET, "POST /sum 00000000 0", "GET /a"},
            {"POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 009\r\n\r\n123456789" + GET, "POST /x", "GET /a"},
            {CHUNKED + "9\r\n123456789\r\n0\r\n\r\n" + GET, "POST /sum cbf43926 9", "GET /a"},
            {CHUNKED + "3;a\r\n123\r\n06 ;b=\"c\"\r\n456789\r\n000\r\n\r\n" + GET, "POST /sum cbf43926 9", "GET /a"},
            {CHUNKED + "9\r\n123456789\r\n0\r\nA: b\r\nC:\r\n\r\n" + GET, "POST /sum cbf43926 9", "GET /a"},
            {CHUNKED + "a\r\n0123456789\r\nA\r\n0123456789\r\n0\r\n\r\n", "POST /sum fc89bad5 20"},
        };
    }

    private static void shapes() {
        for (String[] whole : wholes()) {
            assertEquals(List.of(whole).subList(1, whole.length), parse(whole[0]));
        }
        String expect = CHUNKED.replace("Host", "Expect: 100-continue\r\nHost");
        assertEquals(List.of("continue", "POST /sum 00000000 0"), parse(expect + "0\r\n\r\n", expect.length()));
        // Whose body has come does not wait.
        assertEquals(List.of("POST /sum 00000000 0"), parse(expect + "0\r\n\r\n"));
        assertEquals(List.of("GET /a"), parse(GET.replace("Host", "Expect: 100-continue\r\nHost")));
    }

    private static void splitAtEachByte() {
        for (String[] whole : wholes()) {
            for (int first = 0; first <= whole[0].length(); first++) {
                assertEquals(List.of(whole).subList(1, whole.length), parse(whole[0], first));
                int second = Math.min(whole[0].length(), first + 3);
                assertEquals(List.of(whole).subList(1, whole.length), parse(whole[0], first, second));
            }
        }
    }

    private static void byteByByte() {
        for (String[] whole : wholes()) {
            int[] cuts = new int[whole[0].length()];
            for (int at = 0; at < cuts.length; at++) {
                cuts[at] = at;
            }
            assertEquals(List.of(whole).subList(1, whole.length), parse(whole[0], cuts));
        }
    }

    private static String[][] refused() {
        String post = "POST /sum HTTP/1.1\r\nHost: x\r\n";
        String get = "GET / HTTP/1.1\r\nHost: x\r\n";
        return new String[][] {
            {"400", "GET / HTTP/1.1\r\n\r\n"},
            {"400", "GET / HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n"},
            {"400", "GET / HTTP/1.0\r\nHost: x\r\nHost: x\r\n\r\n"},
            {"505", "GET / HTTP/3.7\r\nHost: x\r\n\r\n"},
            {"505", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"},
            {"400", "GET / http/1.1\r\nHost: x\r\n\r\n"},
            {"400", "GET / HTTP/1.10\r\nHost: x\r\n\r\n"},
            {"400", "GET / HTTP/1.\r\nHost: x\r\n\r\n"},
            {"400", "GET /\r\n\r\n"},
            {"400", " GET / HTTP/1.1\r\nHost: x\r\n\r\n"},
            {"400", "GET  / HTTP/1.1\r\nHost: x\r\n\r\n"},
            {"400", "GET / HTTP/1.1 \r\nHost: x\r\n\r\n"},
            {"400", "GET /\u00e4 HTTP/1.1\r\nHost: x\r\n\r\n"},
            {"400", "G(T / HTTP/1.1\r\nHost: x\r\n\r\n"},
            {"400", "GET / HTTP/1.1\nHost: x\n\n"},
            {"400", "\nGET / HTTP/1.1\r\nHost: x\r\n\r\n"},
            {"400", get + "A : b\r\n\r\n"},
            {"400", get + "A: b\r\n c\r\n\r\n"},
            {"400", get + ": b\r\n\r\n"},
            {"400", get + "A\r\n\r\n"},
            {"400", get + "A: b\0\r\n\r\n"},
            {"400", get + "A: b\rc\r\n\r\n"},
            {"417", get + "Expect: 200-ok\r\n\r\n"},
            {"400", post + "Content-Length: 1\r\nContent-Length: 1\r\n\r\na"},
            {"400", post + "Content-Length: 1, 1\r\n\r\na"},
            {"400", post + "Content-Length: +1\r\n\r\na"},
            {"400", post + "Content-Length: -1\r\n\r\na"},
            {"400", post + "Content-Length: 0x1\r\n\r\na"},
            {"400", post + "Content-Length: \r\n\r\na"},
            {"400", post + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"},
            {"400", post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"},
            {"400", "POST /sum HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"},
            {"501", post + "Transfer-Encoding: gzip, chunked\r\n\r\n"},
            {"501", post + "Transfer-Encoding: identity\r\n\r\n"},
            {"413", post + "Content-Length: 1001\r\n\r\n"},
            {"413", post + "Content-Length: 99999999999999999999999999999999999\r\n\r\n"},
            {"413", CHUNKED + "3e9\r\n"},
            {"413", CHUNKED + "1\r\na\r\n3e8\r\n"},
            {"400", CHUNKED + "00000000000000000\r\n"},
            {"400", CHUNKED + "\r\n"},
            {"400", CHUNKED + "g\r\n"},
            {"400", CHUNKED + "-1\r\n"},
            {"400", CHUNKED + "1 1\r\n"},
            {"400", CHUNKED + "1\n"},
            {"400", CHUNKED + "1\r\rab"},
            {"400", CHUNKED + "1;\0\r\n"},
            {"400", CHUNKED + "1\r\nab"},
            {"400", CHUNKED + "1\r\na\rb"},
            {"400", CHUNKED + "0\r\n(: b\r\n\r\n"},
            {"431", CHUNKED + "1;" + "a".repeat(17 << 10)},
            {"431", CHUNKED + "0\r\n" + "a: b\r\n".repeat(5000)},
        };
    }

    private static void refusals() {
        for (String[] pair : refused()) {
            assertEquals(List.of(pair[0]), parse(pair[1]));
        }
    }

    private static void refusalsSplit() {
        for (String[] pair : refused()) {
            for (int at = 0; at <= Math.min(200, pair[1].length()); at++) {
                assertEquals(List.of(pair[0]), parse(pair[1], Math.min(at, pair[1].length())));
            }
        }
    }

    private static void limits() {
        String start = "GET /a HTTP/1.1\r\nHost: x\r\nA: ";
        int most = Parser.MOST_HEAD_BYTES - start.length() - 4;
        assertEquals(List.of("GET /a"), parse(start + "a".repeat(most) + "\r\n\r\n"));
        assertEquals(List.of("431"), parse(start + "a".repeat(most + 1) + "\r\n\r\n"));
        assertEquals(List.of("431"), parse(start + "a".repeat(100_000)));
        String post = "POST /sum HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n" + "\0".repeat(1000);
        assertEquals(List.of("POST /sum 060b1780 1000"), parse(post));
        assertEquals(
                List.of("POST /sum 060b1780 1000"), parse(CHUNKED + "3e8\r\n" + "\0".repeat(1000) + "\r\n0\r\n\r\n"));
    }

    /** Any byte put in the place of any other gives requests or a refusal, and the same ones however it is split. */
    private static void neverThrows() {
        String whole =
                "POST /sum HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3;a\r\nabc\r\n0\r\nB: c\r\n\r\n"
                        + GET;
        byte[] other = {0, 9, 10, 13, ' ', '0', ':', ';', 'a', 'f', 127, -1};
        for (int at = 0; at < whole.length(); at++) {
            for (byte change : other) {
                byte[] bytes = whole.getBytes(ISO_8859_1);
                bytes[at] = change;
                String changed = new String(bytes, ISO_8859_1);
                List<String> found = parse(changed);
                assertEquals(found, parse(changed, at));
                assertEquals(found, parse(changed, Math.min(at + 1, whole.length())));
            }
        }
    }

    private static void places() {
        Feed feed = new Feed();
        byte[] bytes = "POST /sum HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nab".getBytes(ISO_8859_1);
        assertEquals(Parser.Place.BETWEEN, feed.parser.place());
        feed.give(bytes, 0, 10);
        assertEquals(Parser.Place.IN_HEAD, feed.parser.place());
        feed.give(bytes, 10, bytes.length - 1);
        assertEquals(Parser.Place.IN_BODY, feed.parser.place());
        feed.give(bytes, bytes.length - 1, bytes.length);
        assertEquals(Parser.Place.BETWEEN, feed.parser.place());
    }

    private static void inputGrows() {
        Input input = new Input();
        int given = 0;
        while (!input.isFull()) {
            ByteBuffer room = input.room();
            int count = Math.min(1000, room.remaining());
            for (int at = 0; at < count; at++) {
                room.put((byte) (given + at));
            }
            input.filled(count);
            given += count;
        }
        assertEquals(Input.MOST_BYTES, given);
        for (int at = 0; at < given; at++) {
            assertEquals((byte) at, input.bytes()[input.start()]);
            input.consume(1);
        }
        assertTrue(input.isEmpty(), "bytes are left");
    }
}
