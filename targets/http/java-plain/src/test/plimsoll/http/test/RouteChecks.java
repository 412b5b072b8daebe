package plimsoll.http.test;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static plimsoll.http.test.Tests.assertEquals;
import static plimsoll.http.test.Tests.assertTrue;

import java.util.Map;
import java.util.TreeMap;
import plimsoll.http.test.Wire.Reply;

/** The routes, HEAD, unknown paths and wrong methods, and metrics. */
final class RouteChecks {
    private RouteChecks() {}

    static void addTo(Tests tests, ServerProcess server) {
        tests.add("routes", () -> routes(server));
        tests.add("bytes", () -> bytes(server));
        tests.add("json", () -> json(server));
        tests.add("sum", () -> sum(server));
        tests.add("too-large", () -> tooLarge(server));
        tests.add("head", () -> head(server));
        tests.add("unknown-or-wrong", () -> unknownOrWrong(server));
        tests.add("path-double-slash", () -> {
            try (Wire wire = new Wire(server.port)) {
                assertEquals(404, wire.get("//").status());
                assertEquals("ok", wire.get("/").text());
            }
        });
        tests.add("metrics-requests", () -> requests(server));
        tests.add("metrics-connections", () -> connections(server));
    }

    static String post(String body) {
        return "POST /sum HTTP/1.1\r\nHost: x\r\nContent-Length: " + body.length() + "\r\n\r\n" + body;
    }

    private static void ok(Reply reply, String type, String body) {
        assertEquals(200, reply.status());
        assertEquals(type, reply.field("content-type"));
        assertEquals(body, reply.text());
        assertTrue(reply.field("date").matches("\\w{3}, \\d\\d \\w{3} \\d{4} \\d\\d:\\d\\d:\\d\\d GMT"), "a bad date");
        assertEquals(null, reply.field("transfer-encoding"));
        assertEquals(null, reply.field("connection"));
    }

    private static void routes(ServerProcess server) throws Exception {
        try (Wire wire = new Wire(server.port)) {
            ok(wire.get("/"), "text/plain", "ok");
            ok(wire.get("/?a=b"), "text/plain", "ok");
            ok(wire.get("/healthz"), "text/plain", "ok");
            ok(wire.get("/bytes/3?a=/b"), "application/octet-stream", "012");
            ok(wire.send("GET http://x/bytes/2 HTTP/1.1\r\nHost: x\r\n\r\n").reply(), "application/octet-stream", "01");
            ok(
                    wire.send("GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc")
                            .reply(),
                    "text/plain",
                    "ok");
        }
    }

    private static void bytes(ServerProcess server) throws Exception {
        try (Wire wire = new Wire(server.port)) {
            for (int length : new int[] {1, 2, 15, 16, 17, 4095, 4096, 4097, 8192, 65_536, 65_537, 1 << 20}) {
                String wanted = "0123456789abcdef".repeat(length / 16 + 1).substring(0, length);
                ok(wire.get("/bytes/" + length), "application/octet-stream", wanted);
            }
            for (String bad : new String[] {"0", "1048577", "01", "+1", "-1", "1a", "", "99999999999999999999"}) {
                assertEquals(404, wire.get("/bytes/" + bad).status());
            }
        }
    }

    private static void json(ServerProcess server) throws Exception {
        try (Wire wire = new Wire(server.port)) {
            ok(wire.get("/json/0"), "application/json", "{\"id\":0,\"name\":\"item 0\",\"even\":true}");
            ok(
                    wire.get("/json/9007199254740991"),
                    "application/json",
                    "{\"id\":9007199254740991,\"name\":\"item 9007199254740991\",\"even\":false}");
            assertEquals(404, wire.get("/json/9007199254740992").status());
            assertEquals(404, wire.get("/json/x").status());
        }
    }

    private static void sum(ServerProcess server) throws Exception {
        try (Wire wire = new Wire(server.port)) {
            ok(wire.send(post("")).reply(), "text/plain", "00000000 0");
            ok(wire.send("POST /sum HTTP/1.1\r\nHost: x\r\n\r\n").reply(), "text/plain", "00000000 0");
            // The check value of this CRC.
            ok(wire.send(post("123456789")).reply(), "text/plain", "cbf43926 9");
            ok(wire.send(post("\0".repeat(1 << 20))).reply(), "text/plain", "a738ea1c 1048576");
        }
    }

    private static void tooLarge(ServerProcess server) throws Exception {
        String head = "POST /sum HTTP/1.1\r\nHost: x\r\n";
        refusedOrClosed(server, head + "Content-Length: 1048577\r\n\r\n" + "a".repeat((1 << 20) + 1));
        refusedOrClosed(
                server,
                head + "Transfer-Encoding: chunked\r\n\r\n100001\r\n" + "a".repeat((1 << 20) + 1) + "\r\n0\r\n\r\n");
        refusedOrClosed(server, head + "Content-Length: 99999999999999999999999\r\n\r\n");
    }

    private static void refusedOrClosed(ServerProcess server, String request) throws Exception {
        try (Wire wire = new Wire(server.port)) {
            Reply reply = wire.send(request).reply();
            assertTrue(reply.status() == 413 || reply.status() == 400, "status " + reply.status());
        } catch (java.net.SocketException | java.io.EOFException e) {
            // Closed, which is allowed too.
            assertTrue(server.isAlive(), "the server died");
        }
    }

    private static void head(ServerProcess server) throws Exception {
        try (Wire wire = new Wire(server.port)) {
            for (String path : new String[] {"/", "/bytes/100000", "/json/8", "/healthz", "/nope"}) {
                Map<String, String> get = new TreeMap<>(wire.get(path).fields());
                Map<String, String> head = new TreeMap<>(wire.send("HEAD " + path + " HTTP/1.1\r\nHost: x\r\n\r\n")
                        .reply(false)
                        .fields());
                assertTrue(get.remove("date") != null && head.remove("date") != null, "no date");
                assertEquals(get, head);
            }
            ok(wire.get("/"), "text/plain", "ok");
        }
    }

    private static void unknownOrWrong(ServerProcess server) throws Exception {
        try (Wire wire = new Wire(server.port)) {
            for (String path :
                    new String[] {"/nope", "/bytes", "/bytes/", "/bytes/1/", "/json", "/sum/1", "/healthzz"}) {
                assertEquals(404, wire.get(path).status());
            }
            assertEquals(405, wire.get("/sum").status());
            for (String method : new String[] {"PUT", "DELETE", "POST", "OPTIONS", "PATCH", "QUERY"}) {
                Reply reply = wire.send(method + " /bytes/2 HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi")
                        .reply();
                assertEquals(405, reply.status());
                assertEquals("GET, HEAD", reply.field("allow"));
            }
            ok(wire.get("/"), "text/plain", "ok");
        }
    }

    static double metric(ServerProcess server, String name) throws Exception {
        try (Wire wire = new Wire(server.port)) {
            String text = new String(wire.get("/metrics").body(), ISO_8859_1);
            String line = text.lines()
                    .filter(found -> found.startsWith(name + " "))
                    .findFirst()
                    .orElseThrow(() -> new AssertionError("no metric " + name));
            return Double.parseDouble(line.substring(name.length() + 1));
        }
    }

    private static void requests(ServerProcess server) throws Exception {
        double before = metric(server, "http_requests_total");
        try (Wire wire = new Wire(server.port)) {
            for (int count = 0; count < 10; count++) {
                wire.get("/");
            }
        }
        // The second look is a request itself.
        assertEquals(before + 11, metric(server, "http_requests_total"));
    }

    private static void connections(ServerProcess server) throws Exception {
        double accepted = metric(server, "http_connections_accepted_total");
        Wire[] wires = new Wire[20];
        for (int at = 0; at < wires.length; at++) {
            wires[at] = new Wire(server.port);
            wires[at].get("/");
        }
        assertEquals(accepted + 21, metric(server, "http_connections_accepted_total"));
        assertTrue(metric(server, "http_connections_open") >= 21, "fewer are open than are");
        for (Wire wire : wires) {
            wire.close();
        }
        // Each look is a connection itself, and the server may not have seen the end of the one before.
        double open = metric(server, "http_connections_open");
        for (int wait = 0; wait < 100 && open > 1; wait++) {
            Thread.sleep(20);
            open = metric(server, "http_connections_open");
        }
        assertEquals(1.0, open);
    }
}
