package plimsoll.http.jdk;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpHandler;
import java.io.IOException;
import java.io.InputStream;
import plimsoll.http.Answer;
import plimsoll.http.Checksum;
import plimsoll.http.Routes;

/** The contract's routes on the library's exchange. */
final class Handler implements HttpHandler {
    private static final int BUFFER_BYTES = 8 << 10;

    private final Routes routes;
    private final long mostBodyBytes;
    private final InFlight inFlight;

    Handler(Routes routes, long mostBodyBytes, InFlight inFlight) {
        this.routes = routes;
        this.mostBodyBytes = mostBodyBytes;
        this.inFlight = inFlight;
    }

    @Override
    public void handle(HttpExchange exchange) throws IOException {
        String path = exchange.getRequestURI().getRawPath();
        Checksum sum = null;
        if (Routes.takesBody(path)) {
            sum = new Checksum();
            int status = read(exchange, sum);
            if (status != 0) {
                Replies.refuse(exchange, status);
                return;
            }
        }
        Answer answer = routes.answer(exchange.getRequestMethod(), path, sum);
        Replies.send(exchange, answer, inFlight.isDraining() || asksToClose(exchange));
    }

    /**
     * Reads the body; returns the status to refuse it with, or 0. If it is badly chunked the exception ends the
     * connection without an answer: with one, the library would first look for the end of that body.
     */
    private int read(HttpExchange exchange, Checksum sum) throws IOException {
        String length = exchange.getRequestHeaders().getFirst("Content-Length");
        if (length != null && Long.parseLong(length) > mostBodyBytes) {
            return 413;
        }
        byte[] buffer = new byte[BUFFER_BYTES];
        InputStream body = exchange.getRequestBody();
        for (int count = body.read(buffer); count >= 0; count = body.read(buffer)) {
            sum.add(buffer, 0, count);
            if (sum.length() > mostBodyBytes) {
                return 413;
            }
        }
        return 0;
    }

    /** The library itself knows the option only where it stands alone. */
    private static boolean asksToClose(HttpExchange exchange) {
        var options = exchange.getRequestHeaders().get("Connection");
        if (options == null) {
            return false;
        }
        for (String list : options) {
            for (String option : list.split(",")) {
                if (option.strip().equalsIgnoreCase("close")) {
                    return true;
                }
            }
        }
        return false;
    }
}
