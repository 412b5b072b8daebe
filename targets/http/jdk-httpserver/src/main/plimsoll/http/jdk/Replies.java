package plimsoll.http.jdk;

import com.sun.net.httpserver.HttpExchange;
import java.io.IOException;
import java.io.OutputStream;
import plimsoll.http.Answer;

/** Sends answers. */
final class Replies {
    /** The library copies each piece to a buffer of twice its size, which it keeps with the connection. */
    private static final int PIECE_BYTES = 64 << 10;

    private Replies() {}

    static void send(HttpExchange exchange, Answer answer, boolean close) throws IOException {
        var fields = exchange.getResponseHeaders();
        fields.set("Content-Type", answer.contentType());
        if (answer.allow() != null) {
            fields.set("Allow", answer.allow());
        }
        if (close) {
            // The library sees this and closes.
            fields.set("Connection", "close");
        }
        if (exchange.getRequestMethod().equals("HEAD")) {
            fields.set("Content-Length", Integer.toString(answer.length()));
            exchange.sendResponseHeaders(answer.status(), -1);
            return;
        }
        exchange.sendResponseHeaders(answer.status(), answer.length());
        try (OutputStream out = exchange.getResponseBody()) {
            for (int at = 0; at < answer.length(); at += PIECE_BYTES) {
                out.write(answer.body(), at, Math.min(PIECE_BYTES, answer.length() - at));
            }
        }
    }

    static void refuse(HttpExchange exchange, int status) throws IOException {
        send(exchange, Answer.refusal(status), true);
    }
}
