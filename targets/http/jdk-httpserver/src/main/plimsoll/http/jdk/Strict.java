package plimsoll.http.jdk;

import com.sun.net.httpserver.Filter;
import com.sun.net.httpserver.Headers;
import com.sun.net.httpserver.HttpExchange;
import java.io.IOException;
import java.util.List;

/** Refuses what the library lets through although RFC 9112 forbids it, as far as a filter can still see it. */
final class Strict extends Filter {
    private final InFlight inFlight;

    Strict(InFlight inFlight) {
        this.inFlight = inFlight;
    }

    @Override
    public String description() {
        return "checks version, Host, Content-Length and Transfer-Encoding";
    }

    @Override
    public void doFilter(HttpExchange exchange, Chain chain) throws IOException {
        inFlight.begin();
        try {
            int status = check(exchange);
            if (status == 0) {
                chain.doFilter(exchange);
            } else {
                Replies.refuse(exchange, status);
            }
        } finally {
            inFlight.end();
        }
    }

    private static int check(HttpExchange exchange) {
        String version = exchange.getProtocol();
        boolean http10 = version.equals("HTTP/1.0");
        if (!http10 && !version.equals("HTTP/1.1")) {
            return version.matches("HTTP/\\d\\.\\d") ? 505 : 400;
        }
        Headers fields = exchange.getRequestHeaders();
        List<String> hosts = fields.get("Host");
        int count = hosts == null ? 0 : hosts.size();
        if (count != 1 && !(count == 0 && http10)) {
            return 400;
        }
        // Long.parseLong, with which the library reads it, takes a sign.
        String length = fields.getFirst("Content-Length");
        if (length != null && !length.chars().allMatch(c -> c >= '0' && c <= '9')) {
            return 400;
        }
        return http10 && fields.containsKey("Transfer-Encoding") ? 400 : 0;
    }
}
