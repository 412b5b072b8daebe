package plimsoll.http.helidon;

import static java.nio.charset.StandardCharsets.US_ASCII;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.helidon.http.Header;
import io.helidon.http.HeaderNames;
import io.helidon.http.HeaderValues;
import io.helidon.http.Method;
import io.helidon.http.PathMatchers;
import io.helidon.http.Status;
import io.helidon.webserver.CloseConnectionException;
import io.helidon.webserver.http.FilterChain;
import io.helidon.webserver.http.Handler;
import io.helidon.webserver.http.HttpRouting;
import io.helidon.webserver.http.RoutingRequest;
import io.helidon.webserver.http.RoutingResponse;
import io.helidon.webserver.http.ServerRequest;
import io.helidon.webserver.http.ServerResponse;
import java.io.IOException;
import java.io.InputStream;
import java.util.function.Predicate;
import java.util.stream.Stream;
import plimsoll.http.Checksum;
import plimsoll.http.Config;
import plimsoll.http.Item;
import plimsoll.http.Metrics;
import plimsoll.http.Pattern;

/** The routes, by Helidon's own router. */
final class Routes {
    private static final Predicate<Method> READING = Method.predicate(Method.GET, Method.HEAD);
    private static final Header PROMETHEUS = HeaderValues.createCached(HeaderNames.CONTENT_TYPE, Metrics.CONTENT_TYPE);
    private static final byte[] OK = "ok".getBytes(US_ASCII);
    private static final int READ_BYTES = 16_384;

    private final ObjectMapper mapper = new ObjectMapper();
    private final Config config;
    private final Metrics metrics;
    private final InFlight streams;
    private volatile boolean draining;

    Routes(Config config, Metrics metrics, InFlight streams) {
        this.streams = streams;
        this.config = config;
        this.metrics = metrics;
    }

    /** From now on answers tell the client that the connection ends. */
    void drain() {
        draining = true;
    }

    HttpRouting.Builder routing() {
        HttpRouting.Builder routes = HttpRouting.builder().addFilter(this::filter);
        get(routes, "/", (request, response) -> answer(request, response, HeaderValues.CONTENT_TYPE_TEXT_PLAIN, OK));
        get(
                routes,
                "/healthz",
                (request, response) -> answer(request, response, HeaderValues.CONTENT_TYPE_TEXT_PLAIN, OK));
        get(
                routes,
                "/metrics",
                (request, response) ->
                        answer(request, response, PROMETHEUS, metrics.text().getBytes(US_ASCII)));
        get(routes, "/bytes/{size}", Routes::bytes);
        get(routes, "/json/{id}", this::json);
        return routes.post("/sum", this::sum);
    }

    private void filter(FilterChain chain, RoutingRequest request, RoutingResponse response) {
        metrics.request();
        if (isHttp2(request)) {
            streams.begin();
            try {
                chain.proceed();
            } finally {
                streams.end();
            }
            return;
        }
        boolean sound = Framing.isSound(request.headers());
        boolean last = draining || !sound || asksToClose(request);
        if (last) {
            response.header(HeaderValues.CONNECTION_CLOSE);
        }
        if (sound) {
            chain.proceed();
        } else {
            response.status(Status.BAD_REQUEST_400).send();
        }
        if (last) {
            end();
        }
    }

    /** Helidon compares the whole value of the field; it is a list of words in any case. */
    private static boolean asksToClose(ServerRequest request) {
        return request.headers().values(HeaderNames.CONNECTION).stream()
                .flatMap(value -> Stream.of(value.split(",")))
                .anyMatch(word -> word.trim().equalsIgnoreCase("close"));
    }

    private static boolean isHttp2(ServerRequest request) {
        return request.prologue().protocolVersion().startsWith("2");
    }

    /** Ends a connection of HTTP/1.1, by the exception that Helidon has for this. Helidon 4.2.3 by itself reads on after it has answered that it will close. */
    private static void end() {
        throw new CloseConnectionException("the last answer was sent");
    }

    private static void get(HttpRouting.Builder routes, String path, Handler handler) {
        routes.route(READING, PathMatchers.create(path), handler);
    }

    private static void bytes(ServerRequest request, ServerResponse response) {
        int size = Pattern.size(request.path().pathParameters().get("size"));
        if (size < 0) {
            response.status(Status.NOT_FOUND_404).send();
            return;
        }
        answer(request, response, HeaderValues.CONTENT_TYPE_OCTET_STREAM, Pattern.bytes(), size);
    }

    private void json(ServerRequest request, ServerResponse response) throws JsonProcessingException {
        long id = Item.id(request.path().pathParameters().get("id"));
        if (id < 0) {
            response.status(Status.NOT_FOUND_404).send();
            return;
        }
        answer(request, response, HeaderValues.CONTENT_TYPE_JSON, mapper.writeValueAsBytes(Item.of(id)));
    }

    private void sum(ServerRequest request, ServerResponse response) throws IOException {
        Checksum checksum = new Checksum();
        byte[] buffer = new byte[READ_BYTES];
        // Not closed: that would read the rest of a body that cannot be read.
        InputStream body = request.content().inputStream();
        for (int count = body.read(buffer); count >= 0; count = body.read(buffer)) {
            checksum.update(buffer, 0, count);
            if (checksum.length() > config.maxBodyBytes()) {
                refuse(request, response);
                return;
            }
        }
        if (draining && !isHttp2(request)) {
            // It began while its body was on the way.
            response.header(HeaderValues.CONNECTION_CLOSE);
        }
        answer(
                request,
                response,
                HeaderValues.CONTENT_TYPE_TEXT_PLAIN,
                checksum.toString().getBytes(US_ASCII));
    }

    /** The body is too long, and what is left of it is not read. */
    private static void refuse(ServerRequest request, ServerResponse response) {
        response.status(Status.REQUEST_ENTITY_TOO_LARGE_413);
        if (isHttp2(request)) {
            response.send();
        } else {
            response.header(HeaderValues.CONNECTION_CLOSE).send();
            end();
        }
    }

    private static void answer(ServerRequest request, ServerResponse response, Header type, byte[] body) {
        answer(request, response, type, body, body.length);
    }

    private static void answer(ServerRequest request, ServerResponse response, Header type, byte[] body, int length) {
        response.header(type);
        if (request.prologue().method().equals(Method.HEAD)) {
            response.headers().contentLength(length);
            response.send();
        } else {
            response.send(body, 0, length);
        }
    }
}
