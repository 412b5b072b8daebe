package plimsoll.http.e2e;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.vertx.core.Future;
import io.vertx.core.Vertx;
import io.vertx.core.buffer.Buffer;
import io.vertx.core.http.HttpClientAgent;
import io.vertx.core.http.HttpClientOptions;
import io.vertx.core.http.HttpClientRequest;
import io.vertx.core.http.HttpClientResponse;
import io.vertx.core.http.HttpMethod;
import io.vertx.core.http.HttpVersion;
import io.vertx.core.http.PoolOptions;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** HTTP/2 with prior knowledge, on the same port. Skipped for a target whose manifest does not have it. */
class Http2Test {
    private Vertx vertx;
    private HttpClientAgent client;

    private record Answer(HttpClientResponse head, Buffer body) {
        String text() {
            return body.toString();
        }
    }

    @BeforeEach
    void open() throws Exception {
        Assumptions.assumeTrue(Server.speaksHttp2(), "no h2c in the manifest");
        vertx = Vertx.vertx();
        HttpClientOptions options = new HttpClientOptions()
                .setProtocolVersion(HttpVersion.HTTP_2)
                .setHttp2ClearTextUpgrade(false)
                .setDefaultHost("127.0.0.1")
                .setDefaultPort(Server.shared().port());
        client = vertx.createHttpClient(options, new PoolOptions().setHttp2MaxSize(1));
    }

    @AfterEach
    void close() throws Exception {
        if (vertx != null) {
            await(vertx.close());
        }
    }

    private static <T> T await(Future<T> future) throws Exception {
        return future.toCompletionStage().toCompletableFuture().get(10, TimeUnit.SECONDS);
    }

    private Future<Answer> ask(HttpMethod method, String path, Buffer body) {
        // All in the first callback, on the connection's thread: a body that comes before somebody asks for it is lost.
        return client.request(method, path).compose(request -> {
            Future<HttpClientResponse> sent = body == null ? request.send() : request.send(body);
            return sent.compose(response -> response.body().map(bytes -> new Answer(response, bytes)));
        });
    }

    @Test
    void allRoutes() throws Exception {
        Answer root = await(ask(HttpMethod.GET, "/?q", null));
        assertEquals(HttpVersion.HTTP_2, root.head().version());
        assertEquals("ok", root.text());
        assertEquals("2", root.head().getHeader("content-length"));
        assertTrue(root.head().getHeader("date") != null, "no date");
        assertEquals(
                "{\"id\":8,\"name\":\"item 8\",\"even\":true}",
                await(ask(HttpMethod.GET, "/json/8", null)).text());
        assertEquals(404, await(ask(HttpMethod.GET, "/bytes/0", null)).head().statusCode());
        int status = await(ask(HttpMethod.DELETE, "/", null)).head().statusCode();
        assertTrue(List.of(404, 405, 501).contains(status), "status " + status);
        String metrics = await(ask(HttpMethod.GET, "/metrics", null)).text();
        assertTrue(metrics.contains("\nhttp_requests_total "), metrics);
    }

    @Test
    void bodiesOfOneMebibyte() throws Exception {
        int size = 1_048_576;
        Answer bytes = await(ask(HttpMethod.GET, "/bytes/" + size, null));
        assertEquals("0123456789abcdef".repeat(size / 16), bytes.text());
        byte[] body = RoutesTest.randomBody(size);
        assertEquals(
                RoutesTest.expectedSum(body),
                await(ask(HttpMethod.POST, "/sum", Buffer.buffer(body))).text());
        assertEquals(
                RoutesTest.expectedSum(new byte[0]),
                await(ask(HttpMethod.POST, "/sum", null)).text());
    }

    @Test
    void headHasFieldsAndNoBody() throws Exception {
        Answer head = await(ask(HttpMethod.HEAD, "/bytes/77", null));
        assertEquals(200, head.head().statusCode());
        assertEquals("77", head.head().getHeader("content-length"));
        assertEquals(0, head.body().length());
    }

    @Test
    void aHundredStreamsAtOnce() throws Exception {
        for (int round = 0; round < 10; round++) {
            List<Future<Answer>> answers = new ArrayList<>();
            for (int i = 1; i <= 100; i++) {
                answers.add(ask(HttpMethod.GET, "/bytes/" + i * 100, null));
            }
            for (int i = 1; i <= 100; i++) {
                assertEquals(i * 100, await(answers.get(i - 1)).body().length());
            }
        }
    }

    @Test
    void tooLongABodyIsRefused() throws Exception {
        Future<Answer> answer = ask(HttpMethod.POST, "/sum", Buffer.buffer(new byte[1_048_577]));
        try {
            assertEquals(413, await(answer).head().statusCode());
        } catch (java.util.concurrent.ExecutionException _) {
            // The stream or the connection was closed, which is as good.
        }
        assertEquals("ok", await(ask(HttpMethod.GET, "/", null)).text());
    }

    @Test
    void streamInFlightIsAnsweredAtTheEnd() throws Exception {
        try (Server server = Server.start(Map.of())) {
            HttpClientRequest request = await(client.request(HttpMethod.POST, server.port(), "127.0.0.1", "/sum"));
            request.putHeader("content-length", "10");
            await(request.write("01234"));
            Thread.sleep(200);
            server.terminate();
            Thread.sleep(500);
            Future<Buffer> answer = request.response().compose(HttpClientResponse::body);
            request.end("56789");
            Buffer body = await(answer);
            assertEquals(
                    RoutesTest.expectedSum("0123456789".getBytes(java.nio.charset.StandardCharsets.US_ASCII)),
                    body.toString());
            assertEquals(0, server.exitCode());
        }
    }
}
