package plimsoll.http.test;

import static plimsoll.http.test.Tests.assertEquals;
import static plimsoll.http.test.Tests.assertTrue;

import java.io.IOException;
import java.net.ConnectException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import plimsoll.http.test.Wire.Reply;

/** Start, end and configuration. Each check has a server of its own. */
final class LifeChecks {
    private static final String HALF = "POST /sum HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n1234";

    private LifeChecks() {}

    /** {@code shortFlags} sets the limit for half a request to 2 s. */
    static void addTo(Tests tests, String target, String shortFlags) {
        tests.add("start-line", () -> startLine(target));
        tests.add("drain", () -> drain(target));
        tests.add("drain-timeout", () -> drainTimeout(target));
        tests.add("drain-under-load", () -> drainUnderLoad(target));
        tests.add("two-workers", () -> twoWorkers(target));
        tests.add("max-body-bytes", () -> maxBodyBytes(target));
        tests.add("bad-variables", () -> badVariables(target));
        tests.add("port-in-use", () -> portInUse(target));
        tests.add("half-requests", () -> {
            try (ServerProcess server = ServerProcess.start(target, Map.of("JAVA_FLAGS", shortFlags))) {
                LimitChecks.halfRequests(server, 2);
            }
        });
    }

    private static void startLine(String target) throws Exception {
        try (ServerProcess server = ServerProcess.start(target, Map.of())) {
            List<String> lines = server.output().lines().toList();
            assertEquals(1, lines.size());
            assertTrue(
                    lines.getFirst().matches("\\{\"runtime\":\"[^\"]* 25[^\"]*\",.*\\}"),
                    "not the line: " + lines.getFirst());
        }
    }

    private static void drain(String target) throws Exception {
        try (ServerProcess server = ServerProcess.start(target, Map.of());
                Wire idle = new Wire(server.port);
                Wire busy = new Wire(server.port)) {
            idle.get("/");
            busy.send(HALF);
            Thread.sleep(200);
            server.terminate();
            Thread.sleep(300);
            try (Wire late = new Wire(server.port)) {
                throw new AssertionError("a new connection was accepted: " + late);
            } catch (ConnectException e) {
                // Refused, as it should be.
            }
            Reply reply = busy.send("56789").reply();
            assertEquals("cbf43926 9", reply.text());
            assertEquals("close", reply.field("connection"));
            assertTrue(busy.isClosed(), "still open after the last answer");
            assertTrue(idle.isClosed(), "an idle connection is open");
            assertEquals(0, server.exitCode(3000));
        }
    }

    private static void drainTimeout(String target) throws Exception {
        try (ServerProcess server = ServerProcess.start(target, Map.of("DRAIN_TIMEOUT_MS", "1500"));
                Wire busy = new Wire(server.port)) {
            busy.send(HALF);
            Thread.sleep(200);
            long start = System.nanoTime();
            server.terminate();
            assertEquals(0, server.exitCode(5000));
            long elapsedMs = (System.nanoTime() - start) / 1_000_000;
            // How late a busy machine sees the exit; the conformance case watches for that, and is exact.
            assertTrue(elapsedMs <= 2500 && elapsedMs >= 800, "it took " + elapsedMs + " ms of 1500");
        }
    }

    private static void drainUnderLoad(String target) throws Exception {
        try (ServerProcess server = ServerProcess.start(target, Map.of())) {
            List<Thread> clients = new ArrayList<>();
            for (int client = 0; client < 10; client++) {
                clients.add(Thread.startVirtualThread(() -> askUntilClosed(server.port)));
            }
            Thread.sleep(500);
            server.terminate();
            assertEquals(0, server.exitCode(3000));
            for (Thread client : clients) {
                client.join();
            }
            assertEquals(1L, server.output().lines().count());
        }
    }

    private static void askUntilClosed(int port) {
        try (Wire wire = new Wire(port)) {
            while (wire.get("/").field("connection") == null) {
                // Until the server says that this was the last.
            }
        } catch (IOException e) {
            // Closed between two requests.
        }
    }

    private static void twoWorkers(String target) throws Exception {
        try (ServerProcess server = ServerProcess.start(target, Map.of("WORKER_THREADS", "2"))) {
            double before = RouteChecks.metric(server, "http_requests_total");
            for (int client = 0; client < 50; client++) {
                try (Wire wire = new Wire(server.port)) {
                    for (int count = 0; count < 10; count++) {
                        assertEquals("ok", wire.get("/").text());
                    }
                }
            }
            assertEquals(before + 501, RouteChecks.metric(server, "http_requests_total"));
            server.terminate();
            assertEquals(0, server.exitCode(3000));
        }
    }

    private static void maxBodyBytes(String target) throws Exception {
        try (ServerProcess server = ServerProcess.start(target, Map.of("MAX_BODY_BYTES", "9"))) {
            try (Wire wire = new Wire(server.port)) {
                assertEquals(
                        "cbf43926 9",
                        wire.send(RouteChecks.post("123456789")).reply().text());
                assertEquals(
                        413, wire.send(RouteChecks.post("1234567890")).reply().status());
            }
            String chunked = "POST /sum HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n";
            try (Wire wire = new Wire(server.port)) {
                assertEquals(
                        413,
                        wire.send(chunked + "5\r\n12345\r\n0\r\n\r\n").reply().status());
            }
        }
    }

    private static void badVariables(String target) throws Exception {
        String[][] variables = {
            {"PORT", "65536"},
            {"PORT", "x"},
            {"PORT", ""},
            {"PORT", "-1"},
            {"PORT", "+80"},
            {"PORT", "80 "},
            {"WORKER_THREADS", "0"},
            {"WORKER_THREADS", "1.5"},
            {"WORKER_THREADS", "99999999999999999999"},
            {"DRAIN_TIMEOUT_MS", "5s"},
            {"DRAIN_TIMEOUT_MS", "-5"},
            {"MAX_BODY_BYTES", "1MiB"},
        };
        for (String[] variable : variables) {
            int port = ServerProcess.freePort();
            try (ServerProcess server = ServerProcess.launch(target, port, Map.of(variable[0], variable[1]))) {
                assertEquals(2, server.exitCode(10_000));
                List<String> lines = server.output().lines().toList();
                assertEquals(1, lines.size());
                assertTrue(lines.getFirst().contains(variable[0]), "does not name it: " + lines.getFirst());
            }
        }
    }

    private static void portInUse(String target) throws Exception {
        try (ServerProcess first = ServerProcess.start(target, Map.of());
                ServerProcess second = ServerProcess.launch(target, first.port, Map.of())) {
            assertEquals(1, second.exitCode(10_000));
            assertTrue(second.output().contains("port " + first.port), "does not name the port: " + second.output());
        }
    }
}
