package plimsoll.http.undertow;

import static java.nio.charset.StandardCharsets.US_ASCII;

import com.fasterxml.jackson.databind.ObjectMapper;
import io.undertow.Handlers;
import io.undertow.io.Receiver;
import io.undertow.server.HttpHandler;
import io.undertow.server.HttpServerExchange;
import io.undertow.server.RequestTooBigException;
import io.undertow.server.RoutingHandler;
import io.undertow.util.Headers;
import io.undertow.util.Methods;
import io.undertow.util.PathTemplateMatch;
import io.undertow.util.StatusCodes;
import java.io.IOException;
import java.nio.ByteBuffer;
import plimsoll.http.Checksum;
import plimsoll.http.Item;
import plimsoll.http.Metrics;
import plimsoll.http.Pattern;

/** The routes, by Undertow's own router. */
final class Routes {
    private static final String PLAIN = "text/plain";
    private static final String BINARY = "application/octet-stream";
    private static final String JSON = "application/json";

    private final ObjectMapper mapper = new ObjectMapper();
    private final Metrics metrics;

    Routes(Metrics metrics) {
        this.metrics = metrics;
    }

    HttpHandler handler() {
        RoutingHandler routes = Handlers.routing();
        get(routes, "/", exchange -> answer(exchange, PLAIN, text("ok")));
        get(routes, "/healthz", exchange -> answer(exchange, PLAIN, text("ok")));
        get(routes, "/metrics", exchange -> answer(exchange, Metrics.CONTENT_TYPE, text(metrics.text())));
        get(routes, "/bytes/{size}", this::bytes);
        get(routes, "/json/{id}", this::json);
        routes.post("/sum", Handlers.httpContinueRead(this::sum));
        return exchange -> {
            metrics.request();
            if (hasUnknownCoding(exchange)) {
                exchange.setPersistent(false);
                exchange.setStatusCode(StatusCodes.NOT_IMPLEMENTED);
                return;
            }
            routes.handleRequest(exchange);
        };
    }

    /** Undertow takes a request with an unknown transfer coding for one without a body. */
    private static boolean hasUnknownCoding(HttpServerExchange exchange) {
        String coding = exchange.getRequestHeaders().getFirst(Headers.TRANSFER_ENCODING);
        return coding != null && !coding.trim().equalsIgnoreCase("chunked");
    }

    private static void get(RoutingHandler routes, String path, HttpHandler handler) {
        routes.get(path, handler).add(Methods.HEAD, path, handler);
    }

    private void bytes(HttpServerExchange exchange) {
        int size = Pattern.size(parameter(exchange, "size"));
        if (size < 0) {
            exchange.setStatusCode(StatusCodes.NOT_FOUND);
            return;
        }
        answer(exchange, BINARY, ByteBuffer.wrap(Pattern.bytes(), 0, size));
    }

    private void json(HttpServerExchange exchange) throws IOException {
        long id = Item.id(parameter(exchange, "id"));
        if (id < 0) {
            exchange.setStatusCode(StatusCodes.NOT_FOUND);
            return;
        }
        answer(exchange, JSON, ByteBuffer.wrap(mapper.writeValueAsBytes(Item.of(id))));
    }

    private void sum(HttpServerExchange exchange) {
        Checksum checksum = new Checksum();
        exchange.getRequestReceiver()
                .receivePartialBytes(
                        (receiving, piece, last) -> {
                            checksum.update(piece, 0, piece.length);
                            if (last) {
                                answer(receiving, PLAIN, text(checksum.toString()));
                            }
                        },
                        Routes::refuseBody);
    }

    /** The body is longer than allowed, or broken. What is left of it is not read, so the connection ends. */
    private static void refuseBody(HttpServerExchange exchange, IOException cause) {
        exchange.setStatusCode(
                cause instanceof Receiver.RequestToLargeException || cause instanceof RequestTooBigException
                        ? StatusCodes.REQUEST_ENTITY_TOO_LARGE
                        : StatusCodes.BAD_REQUEST);
        exchange.setPersistent(false);
        exchange.endExchange();
    }

    /** From the path alone; the exchange's own parameters also hold those of the query. */
    private static String parameter(HttpServerExchange exchange, String name) {
        return exchange.getAttachment(PathTemplateMatch.ATTACHMENT_KEY)
                .getParameters()
                .get(name);
    }

    private static void answer(HttpServerExchange exchange, String type, ByteBuffer body) {
        exchange.getResponseHeaders().put(Headers.CONTENT_TYPE, type);
        exchange.getResponseSender().send(body);
    }

    private static ByteBuffer text(String text) {
        return ByteBuffer.wrap(text.getBytes(US_ASCII));
    }
}
