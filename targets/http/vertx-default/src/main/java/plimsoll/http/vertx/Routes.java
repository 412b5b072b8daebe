package plimsoll.http.vertx;

import io.vertx.core.Vertx;
import io.vertx.core.buffer.Buffer;
import io.vertx.core.http.HttpConnection;
import io.vertx.core.http.HttpHeaders;
import io.vertx.core.http.HttpMethod;
import io.vertx.core.http.HttpServerRequest;
import io.vertx.core.http.HttpServerResponse;
import io.vertx.core.http.HttpVersion;
import io.vertx.core.json.JsonObject;
import plimsoll.http.Checksum;
import plimsoll.http.Config;
import plimsoll.http.HttpDate;
import plimsoll.http.Item;
import plimsoll.http.Metrics;
import plimsoll.http.Pattern;
import plimsoll.http.Route;

/** The routes. Any event loop may call them. */
final class Routes {
    private static final CharSequence PLAIN = HttpHeaders.createOptimized("text/plain");
    private static final CharSequence BINARY = HttpHeaders.createOptimized("application/octet-stream");
    private static final CharSequence JSON = HttpHeaders.createOptimized("application/json");
    private static final CharSequence PROMETHEUS = HttpHeaders.createOptimized(Metrics.CONTENT_TYPE);
    private static final int BAD_REQUEST = 400;
    private static final int NOT_FOUND = 404;
    private static final int NOT_ALLOWED = 405;
    private static final int TOO_LARGE = 413;
    private static final int NOT_IMPLEMENTED = 501;

    private final Buffer pattern = Buffer.buffer(Pattern.bytes());
    private final Config config;
    private final Metrics metrics;
    private volatile boolean draining;

    Routes(Config config, Metrics metrics) {
        this.config = config;
        this.metrics = metrics;
    }

    /** From now on answers tell the client that the connection ends. */
    void drain() {
        draining = true;
    }

    void connection(HttpConnection connection) {
        metrics.opened();
        connection.closeHandler(_ -> metrics.closed());
    }

    void request(HttpServerRequest request) {
        metrics.request();
        int fault = faultOf(request);
        if (fault != 0) {
            refuse(request, fault);
            return;
        }
        switch (Route.of(request.method().name(), request.path())) {
            case Route.Root _, Route.Health _ -> answer(request, PLAIN, Buffer.buffer("ok"));
            case Route.Bytes(int size) -> answer(request, BINARY, pattern.slice(0, size));
            case Route.Sum _ -> sum(request);
            case Route.Json(long id) -> answer(request, JSON, json(id).toBuffer());
            case Route.Counters _ -> answer(request, PROMETHEUS, Buffer.buffer(metrics.text()));
            case Route.NotAllowed(String allowed) -> {
                request.response().putHeader(HttpHeaders.ALLOW, allowed);
                fail(request, NOT_ALLOWED);
            }
            case Route.NotFound _ -> fail(request, NOT_FOUND);
        }
    }

    /** The status for what is wrong with a request that Vert.x lets pass, or 0. */
    private static int faultOf(HttpServerRequest request) {
        if (request.version() == HttpVersion.HTTP_2) {
            return 0;
        }
        if (request.version() == HttpVersion.HTTP_1_1 && !request.headers().contains(HttpHeaders.HOST)) {
            return BAD_REQUEST;
        }
        String coding = request.getHeader(HttpHeaders.TRANSFER_ENCODING);
        return coding == null || coding.equalsIgnoreCase("chunked") ? 0 : NOT_IMPLEMENTED;
    }

    private static JsonObject json(long id) {
        Item item = Item.of(id);
        return JsonObject.of("id", item.id(), "name", item.name(), "even", item.even());
    }

    private void sum(HttpServerRequest request) {
        if ("100-continue".equalsIgnoreCase(request.getHeader(HttpHeaders.EXPECT))) {
            request.response().writeContinue();
        }
        Checksum checksum = new Checksum();
        request.handler(piece -> {
            boolean alreadyOver = checksum.length() > config.maxBodyBytes();
            byte[] bytes = piece.getBytes();
            checksum.update(bytes, 0, bytes.length);
            if (!alreadyOver && checksum.length() > config.maxBodyBytes()) {
                refuse(request, TOO_LARGE);
            }
        });
        request.endHandler(_ -> {
            if (checksum.length() <= config.maxBodyBytes()) {
                answer(request, PLAIN, Buffer.buffer(checksum.toString()));
            }
        });
    }

    /** What is left of the request is not read: the connection ends. A stream of HTTP/2 just gets its answer. */
    private void refuse(HttpServerRequest request, int status) {
        if (request.version() == HttpVersion.HTTP_2) {
            fail(request, status);
        } else {
            request.response().putHeader(HttpHeaders.CONNECTION, HttpHeaders.CLOSE);
            fail(request, status);
            request.connection().close();
        }
    }

    private void fail(HttpServerRequest request, int status) {
        HttpServerResponse response = request.response().setStatusCode(status);
        answer(request, PLAIN, Buffer.buffer(response.getStatusMessage()));
    }

    private void answer(HttpServerRequest request, CharSequence type, Buffer body) {
        HttpServerResponse response = request.response();
        response.putHeader(HttpHeaders.CONTENT_TYPE, type)
                .putHeader(HttpHeaders.CONTENT_LENGTH, Integer.toString(body.length()))
                .putHeader(HttpHeaders.DATE, HttpDate.now());
        if (!draining) {
            send(request, body);
        } else if (request.version() == HttpVersion.HTTP_2) {
            // Vert.x 5.1.6 loses an answer that is sent while it reads, if that was the last stream before the end.
            Vertx.currentContext().runOnContext(_ -> send(request, body));
        } else {
            response.putHeader(HttpHeaders.CONNECTION, HttpHeaders.CLOSE);
            send(request, body);
        }
    }

    private static void send(HttpServerRequest request, Buffer body) {
        if (request.method().equals(HttpMethod.HEAD)) {
            request.response().end();
        } else {
            request.response().end(body);
        }
    }
}
