package plimsoll.http.jetty;

import static java.nio.charset.StandardCharsets.US_ASCII;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import org.eclipse.jetty.http.HttpFields;
import org.eclipse.jetty.http.HttpHeader;
import org.eclipse.jetty.http.HttpStatus;
import org.eclipse.jetty.io.Content;
import org.eclipse.jetty.server.Handler;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Response;
import org.eclipse.jetty.util.Callback;
import plimsoll.http.Checksum;
import plimsoll.http.Item;
import plimsoll.http.Metrics;
import plimsoll.http.Pattern;
import plimsoll.http.Route;

/** The routes. A handler that may block: Jetty runs it on a thread of its pool, or on a virtual one. */
final class RoutesHandler extends Handler.Abstract {
    private static final String PLAIN = "text/plain";
    private static final String BINARY = "application/octet-stream";
    private static final String JSON = "application/json";
    private static final int READ_BYTES = 16_384;

    private final ObjectMapper mapper = new ObjectMapper();
    private final Metrics metrics;
    private volatile boolean draining;

    RoutesHandler(Metrics metrics) {
        this.metrics = metrics;
    }

    /** From now on answers tell the client that the connection ends. */
    void drain() {
        draining = true;
    }

    @Override
    public boolean handle(Request request, Response response, Callback callback) throws Exception {
        metrics.request();
        String path = request.getHttpURI().getCanonicalPath();
        switch (Route.of(request.getMethod(), path)) {
            case Route.Root _, Route.Health _ -> answer(response, callback, PLAIN, text("ok"));
            case Route.Bytes(int size) -> answer(response, callback, BINARY, ByteBuffer.wrap(Pattern.bytes(), 0, size));
            case Route.Sum _ -> answer(response, callback, PLAIN, text(sum(request)));
            case Route.Json(long id) ->
                answer(response, callback, JSON, ByteBuffer.wrap(mapper.writeValueAsBytes(Item.of(id))));
            case Route.Counters _ -> answer(response, callback, Metrics.CONTENT_TYPE, text(metrics.text()));
            case Route.NotAllowed(String allowed) -> {
                response.getHeaders().put(HttpHeader.ALLOW, allowed);
                Response.writeError(request, response, callback, HttpStatus.METHOD_NOT_ALLOWED_405);
            }
            case Route.NotFound _ -> Response.writeError(request, response, callback, HttpStatus.NOT_FOUND_404);
        }
        return true;
    }

    private static String sum(Request request) throws IOException {
        Checksum checksum = new Checksum();
        byte[] buffer = new byte[READ_BYTES];
        try (InputStream body = Content.Source.asInputStream(request)) {
            for (int count = body.read(buffer); count >= 0; count = body.read(buffer)) {
                checksum.update(buffer, 0, count);
            }
        }
        return checksum.toString();
    }

    private void answer(Response response, Callback callback, String type, ByteBuffer body) {
        HttpFields.Mutable headers = response.getHeaders();
        headers.put(HttpHeader.CONTENT_TYPE, type);
        headers.put(HttpHeader.CONTENT_LENGTH, body.remaining());
        if (draining) {
            headers.put(HttpFields.CONNECTION_CLOSE);
        }
        response.write(true, body, callback);
    }

    private static ByteBuffer text(String text) {
        return ByteBuffer.wrap(text.getBytes(US_ASCII));
    }
}
