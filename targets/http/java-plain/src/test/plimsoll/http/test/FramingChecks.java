package plimsoll.http.test;

import static plimsoll.http.test.RouteChecks.post;
import static plimsoll.http.test.Tests.assertEquals;
import static plimsoll.http.test.Tests.assertTrue;

import java.io.EOFException;
import java.net.SocketException;
import plimsoll.http.test.Wire.Reply;

/** Pipelining, chunks, requests in pieces, and requests that must be refused. */
final class FramingChecks {
    private static final String GET = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    private static final String CHUNKED = "POST /sum HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
    private static final String SUM = "cbf43926 9";

    private FramingChecks() {}

    static void addTo(Tests tests, ServerProcess server) {
        tests.add("pipelining", () -> pipelining(server));
        tests.add("pipelining-close", () -> closeInTheThird(server));
        tests.add("chunked-one", () -> sum(server, CHUNKED + "9\r\n123456789\r\n0\r\n\r\n"));
        tests.add("chunked-many", () -> sum(server, CHUNKED + "1\r\n1\r\n03\r\n234\r\n5\r\n56789\r\n000\r\n\r\n"));
        tests.add("chunked-extension", () -> sum(server, CHUNKED + "9;a=b;c=\"d\"\r\n123456789\r\n0;x\r\n\r\n"));
        tests.add("chunked-trailer", () -> sum(server, CHUNKED + "9\r\n123456789\r\n0\r\nA: b\r\nC: d\r\n\r\n"));
        tests.add("chunked-bad-size", () -> {
            for (String size : new String[] {"x", "-1", "+1", "0x1", " 1", "fffffffffffffffff1"}) {
                refused(server, CHUNKED + size + "\r\n1\r\n0\r\n\r\n");
            }
        });
        tests.add("chunked-empty-size", () -> refused(server, CHUNKED + "\r\n1\r\n0\r\n\r\n"));
        tests.add("chunked-no-end", () -> refused(server, CHUNKED + "1\r\n12\r\n0\r\n\r\n"));
        tests.add("cut-off", () -> cutOff(server));
        tests.add("expect-continue", () -> expectContinue(server));
        tests.add("split-at-each-byte", () -> splitAtEachByte(server));
        tests.add("byte-by-byte", () -> byteByByte(server));
        addRefused(tests, server);
    }

    private static void addRefused(Tests tests, ServerProcess server) {
        String head = "POST /sum HTTP/1.1\r\nHost: x\r\n";
        String get = "GET / HTTP/1.1\r\nHost: x\r\n";
        String[][] requests = {
            {"framing-cl-and-te", head + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
            {"framing-te-and-cl", head + "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n"},
            {"framing-two-cl", head + "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc"},
            {"framing-cl-list", head + "Content-Length: 3, 3\r\n\r\nabc"},
            {"framing-cl-plus", head + "Content-Length: +5\r\n\r\nabcde"},
            {"framing-cl-minus", head + "Content-Length: -1\r\n\r\n"},
            {"framing-cl-empty", head + "Content-Length:\r\n\r\n"},
            {"framing-unknown-te", head + "Transfer-Encoding: gzip\r\n\r\n0\r\n\r\n"},
            {"framing-te-list", head + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"},
            {"framing-two-te", head + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
            {"framing-space-before-colon", head + "Content-Length : 3\r\n\r\nabc"},
            {"framing-te-in-1.0", "POST /sum HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
            {"framing-folded", get + "A: b\r\n c\r\n\r\n"},
            {"framing-no-colon", get + "Nonsense\r\n\r\n"},
            {"framing-bad-name", get + "A(b): c\r\n\r\n"},
            {"framing-nul-in-value", get + "A: b\0c\r\n\r\n"},
            {"framing-cr-in-value", get + "A: b\rc\r\n\r\n"},
            {"framing-bare-lf", "GET / HTTP/1.1\nHost: x\n\n"},
            {"framing-no-host", "GET / HTTP/1.1\r\n\r\n"},
            {"framing-two-hosts", "GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n"},
            {"framing-version-3.7", "GET / HTTP/3.7\r\nHost: x\r\n\r\n"},
            {"framing-version-word", "GET / FTP/1.1\r\nHost: x\r\n\r\n"},
            {"framing-no-version", "GET /\r\nHost: x\r\n\r\n"},
            {"framing-two-spaces", "GET  / HTTP/1.1\r\nHost: x\r\n\r\n"},
        };
        for (String[] request : requests) {
            tests.add(request[0], () -> refused(server, request[1]));
        }
    }

    private static void pipelining(ServerProcess server) throws Exception {
        try (Wire wire = new Wire(server.port)) {
            wire.send(GET.repeat(16));
            for (int count = 0; count < 16; count++) {
                assertEquals("ok", wire.reply().text());
            }
            StringBuilder requests = new StringBuilder();
            for (int length = 1; length <= 16; length++) {
                requests.append(GET.replace("/ ", "/bytes/" + length + " "));
            }
            wire.send(requests.toString());
            for (int length = 1; length <= 16; length++) {
                assertEquals(
                        "0123456789abcdef".substring(0, length), wire.reply().text());
            }
            wire.send(GET + post("123456789") + GET);
            assertEquals("ok", wire.reply().text());
            assertEquals(SUM, wire.reply().text());
            assertEquals("ok", wire.reply().text());
            // More than the server holds at once, and more than the kernel does.
            int many = 20_000;
            Thread sender = Thread.startVirtualThread(() -> {
                try {
                    for (int count = 0; count < many; count += 100) {
                        wire.send(GET.repeat(100));
                    }
                } catch (java.io.IOException e) {
                    throw new java.io.UncheckedIOException(e);
                }
            });
            for (int count = 0; count < many; count++) {
                assertEquals("ok", wire.reply().text());
            }
            sender.join();
        }
    }

    private static void closeInTheThird(ServerProcess server) throws Exception {
        try (Wire wire = new Wire(server.port)) {
            wire.send(GET.repeat(2) + GET.replace("Host", "Connection: close\r\nHost") + GET.repeat(2));
            for (int count = 0; count < 3; count++) {
                assertEquals("ok", wire.reply().text());
            }
            wire.timeoutMs(1000);
            assertTrue(wire.isClosed(), "the connection is open, or more answers came");
        }
    }

    private static void sum(ServerProcess server, String request) throws Exception {
        try (Wire wire = new Wire(server.port)) {
            Reply reply = wire.send(request).reply();
            assertEquals(200, reply.status());
            assertEquals(SUM, reply.text());
            assertEquals("ok", wire.get("/").text());
        }
    }

    /** The request gets one answer that is an error, or none, and the connection ends. */
    private static void refused(ServerProcess server, String request) throws Exception {
        try (Wire wire = new Wire(server.port)) {
            wire.timeoutMs(3000);
            try {
                Reply reply = wire.send(request).reply();
                assertTrue(reply.status() >= 400, "status " + reply.status());
            } catch (EOFException | SocketException e) {
                return;
            }
            assertTrue(wire.isClosed(), "a second answer, or no end of the connection");
        }
    }

    private static void cutOff(ServerProcess server) throws Exception {
        String[] beginnings = {
            "GET / HT",
            CHUNKED + "9\r\n1234",
            CHUNKED + "1\r\n1\r\n0\r\n",
            post("123456789").substring(0, 50)
        };
        for (String beginning : beginnings) {
            try (Wire wire = new Wire(server.port)) {
                wire.send(beginning).endOutput();
                try {
                    assertTrue(wire.reply().status() >= 400, "half a request was answered");
                } catch (EOFException | SocketException e) {
                    // Closed without an answer: right too.
                }
            }
            new Wire(server.port).send(beginning).close();
        }
        try (Wire wire = new Wire(server.port)) {
            assertEquals("ok", wire.get("/").text());
        }
    }

    private static void expectContinue(ServerProcess server) throws Exception {
        String[][] requests = {
            {CHUNKED.replace("Host", "Expect: 100-continue\r\nHost"), "9\r\n123456789\r\n0\r\n\r\n"},
            {"POST /sum HTTP/1.1\r\nHost: x\r\nexpect: 100-Continue\r\nContent-Length: 9\r\n\r\n", "123456789"},
        };
        try (Wire wire = new Wire(server.port)) {
            for (String[] request : requests) {
                assertEquals(100, wire.send(request[0]).reply().status());
                assertEquals(SUM, wire.send(request[1]).reply().text());
            }
        }
    }

    private static void splitAtEachByte(ServerProcess server) throws Exception {
        String[] requests = {
            GET, post("123456789"), CHUNKED + "4;x=y\r\n1234\r\n5\r\n56789\r\n0\r\n\r\n", GET + post("123456789") + GET,
        };
        try (Wire wire = new Wire(server.port)) {
            for (String request : requests) {
                for (int at = 1; at < request.length(); at++) {
                    wire.send(request.substring(0, at));
                    // So that the server probably reads the pieces apart.
                    Thread.sleep(1);
                    wire.send(request.substring(at));
                    answered(wire, request);
                }
            }
        }
    }

    private static void byteByByte(ServerProcess server) throws Exception {
        String request = GET + CHUNKED + "4\r\n1234\r\n5\r\n56789\r\n0\r\n\r\n" + post("123456789");
        try (Wire wire = new Wire(server.port)) {
            for (int at = 0; at < request.length(); at++) {
                wire.send(request.substring(at, at + 1));
                Thread.sleep(1);
            }
            assertEquals("ok", wire.reply().text());
            assertEquals(SUM, wire.reply().text());
            assertEquals(SUM, wire.reply().text());
        }
    }

    private static void answered(Wire wire, String request) throws Exception {
        for (String line : request.split("\r\n")) {
            if (line.endsWith("HTTP/1.1")) {
                assertEquals(
                        line.startsWith("GET") || line.contains("GET") ? "ok" : SUM,
                        wire.reply().text());
            }
        }
    }
}
