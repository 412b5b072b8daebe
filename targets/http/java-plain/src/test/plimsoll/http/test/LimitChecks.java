package plimsoll.http.test;

import static plimsoll.http.test.Tests.assertEquals;
import static plimsoll.http.test.Tests.assertTrue;

import java.io.EOFException;
import java.io.IOException;
import java.net.SocketException;
import java.util.ArrayList;
import java.util.List;
import java.util.zip.CRC32;
import plimsoll.http.test.Wire.Reply;

/** Connections that live, and clients that are slow, greedy or gone. */
final class LimitChecks {
    private static final String GET = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    private static final int SLOW_CLIENTS = 200;

    private LimitChecks() {}

    static void addTo(Tests tests, ServerProcess server) {
        tests.add("keep-alive", () -> keepAlive(server));
        tests.add("no-stall", () -> noStall(server));
        tests.add("connection-close", () -> connectionClose(server));
        tests.add("http-1.0", () -> http10(server));
        tests.add("header-of-64-kib", () -> tooMuch(server, "A: " + "a".repeat(64 << 10) + "\r\n"));
        tests.add("header-of-10000-fields", () -> tooMuch(server, "A: b\r\n".repeat(10_000)));
        tests.add("slow-body", () -> slowBody(server));
        tests.add("clients-that-do-not-read", () -> doNotRead(server));
        tests.add("clients-gone", () -> gone(server));
    }

    private static void keepAlive(ServerProcess server) throws Exception {
        try (Wire wire = new Wire(server.port)) {
            for (int count = 0; count < 10_000; count++) {
                assertEquals("ok", wire.send(GET).reply().text());
            }
        }
    }

    /** A stall of 40 ms is Nagle's algorithm against a delayed acknowledgement. */
    private static void noStall(ServerProcess server) throws Exception {
        try (Wire wire = new Wire(server.port)) {
            wire.get("/");
            long start = System.nanoTime();
            for (int count = 0; count < 50; count++) {
                wire.get("/bytes/" + (1 + 400 * count));
            }
            long elapsedMs = (System.nanoTime() - start) / 1_000_000;
            assertTrue(elapsedMs < 1000, "50 requests took " + elapsedMs + " ms");
        }
    }

    private static void connectionClose(ServerProcess server) throws Exception {
        for (String option : new String[] {"close", "Close", "close, te"}) {
            try (Wire wire = new Wire(server.port)) {
                Reply reply = wire.send("GET /bytes/7 HTTP/1.1\r\nHost: x\r\nConnection: " + option + "\r\n\r\n")
                        .reply();
                assertEquals("0123456", reply.text());
                assertEquals("close", reply.field("connection"));
                wire.timeoutMs(1000);
                assertTrue(wire.isClosed(), "still open after 1 s");
            }
        }
    }

    private static void http10(ServerProcess server) throws Exception {
        try (Wire wire = new Wire(server.port)) {
            Reply reply = wire.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
                    .reply();
            assertEquals("keep-alive", reply.field("connection").toLowerCase(java.util.Locale.ROOT));
            assertEquals("ok", wire.send("GET / HTTP/1.0\r\n\r\n").reply().text());
            wire.timeoutMs(1000);
            assertTrue(wire.isClosed(), "still open after 1 s");
        }
    }

    private static void tooMuch(ServerProcess server, String fields) throws Exception {
        try (Wire wire = new Wire(server.port)) {
            Reply reply =
                    wire.send("GET / HTTP/1.1\r\nHost: x\r\n" + fields + "\r\n").reply();
            assertTrue(reply.status() >= 400 && reply.status() < 500, "status " + reply.status());
            assertTrue(wire.isClosed(), "still open");
        } catch (EOFException | SocketException e) {
            assertTrue(server.isAlive(), "the server died");
        }
    }

    private static void slowBody(ServerProcess server) throws Exception {
        byte[] body = "x".repeat(200).getBytes(java.nio.charset.StandardCharsets.US_ASCII);
        CRC32 crc = new CRC32();
        crc.update(body);
        try (Wire wire = new Wire(server.port)) {
            wire.send("POST /sum HTTP/1.1\r\nHost: x\r\nContent-Length: 200\r\n\r\n");
            for (byte each : body) {
                wire.send(new byte[] {each});
                Thread.sleep(10);
            }
            assertEquals(String.format("%08x 200", crc.getValue()), wire.reply().text());
        }
    }

    private static void doNotRead(ServerProcess server) throws Exception {
        int clients = 50;
        int requests = 20;
        long before = server.residentMib();
        List<Wire> wires = new ArrayList<>();
        for (int client = 0; client < clients; client++) {
            Wire wire = new Wire(server.port, 64 << 10);
            wires.add(wire.send(GET.replace("/ ", "/bytes/1048576 ").repeat(requests)));
        }
        Thread.sleep(1000);
        othersAreServed(server);
        long grownMib = server.residentMib() - before;
        // The answers are 1,000 MiB. One for each client would be 50.
        assertTrue(grownMib < 200, "the server grew by " + grownMib + " MiB");
        for (int client = 0; client < 3; client++) {
            for (int count = 0; count < requests; count++) {
                assertEquals(1 << 20, wires.get(client).reply().body().length);
            }
        }
        for (Wire wire : wires) {
            wire.close();
        }
        othersAreServed(server);
    }

    private static void gone(ServerProcess server) throws Exception {
        for (int count = 0; count < 100; count++) {
            new Wire(server.port)
                    .send("POST /sum HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc")
                    .close();
            new Wire(server.port)
                    .send(GET.replace("/ ", "/bytes/1048576 ").repeat(3))
                    .close();
        }
        othersAreServed(server);
    }

    private static void othersAreServed(ServerProcess server) throws IOException {
        long start = System.nanoTime();
        try (Wire wire = new Wire(server.port)) {
            assertEquals("ok", wire.get("/").text());
        }
        long elapsedMs = (System.nanoTime() - start) / 1_000_000;
        assertTrue(elapsedMs < 1000, "another client waited " + elapsedMs + " ms");
    }

    /** The server must have been started with a limit of {@code limitS} for half a request. */
    static void halfRequests(ServerProcess server, int limitS) throws Exception {
        for (String half :
                new String[] {"GET / HTTP/1.1\r\nHo", "POST /sum HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n123"
                }) {
            List<Wire> wires = new ArrayList<>();
            for (int client = 0; client < SLOW_CLIENTS; client++) {
                wires.add(new Wire(server.port).send(half));
            }
            try (Wire idle = new Wire(server.port)) {
                idle.get("/");
                othersAreServed(server);
                for (Wire wire : wires) {
                    wire.timeoutMs(1000 * (limitS + 5));
                    assertTrue(wire.isClosed(), "half a request was answered, or is open after " + limitS + " s");
                    wire.close();
                }
                assertEquals("ok", idle.get("/").text());
            }
        }
    }
}
