package plimsoll.http;

import java.util.concurrent.atomic.LongAdder;

/** What {@code GET /metrics} answers. Any thread may count. */
public final class Metrics {
    public static final String CONTENT_TYPE = "text/plain; version=0.0.4";

    private final LongAdder requests = new LongAdder();
    private final LongAdder accepted = new LongAdder();
    private final LongAdder closed = new LongAdder();

    public void request() {
        requests.increment();
    }

    public void opened() {
        accepted.increment();
    }

    public void closed() {
        closed.increment();
    }

    /** In the text format of Prometheus. */
    public String text() {
        // In this order, so that the gauge is never below 0.
        long ended = closed.sum();
        long begun = accepted.sum();
        return """
                # HELP http_requests_total Requests that the handler received.
                # TYPE http_requests_total counter
                http_requests_total %d
                # HELP http_connections_accepted_total Connections accepted.
                # TYPE http_connections_accepted_total counter
                http_connections_accepted_total %d
                # HELP http_connections_open Connections that are open.
                # TYPE http_connections_open gauge
                http_connections_open %d
                """.formatted(requests.sum(), begun, begun - ended);
    }
}
