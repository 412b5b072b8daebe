package plimsoll.http;

import java.util.concurrent.atomic.LongAdder;

/** What {@code GET /metrics} tells. */
public final class Counts {
    private final boolean knowsConnections;
    private final LongAdder requests = new LongAdder();
    private final LongAdder accepted = new LongAdder();
    private final LongAdder closed = new LongAdder();

    /** If {@code knowsConnections} is false the metrics of connections are left out: no figure beats a wrong one. */
    public Counts(boolean knowsConnections) {
        this.knowsConnections = knowsConnections;
    }

    public void request() {
        requests.increment();
    }

    public void connectionOpened() {
        accepted.increment();
    }

    public void connectionClosed() {
        closed.increment();
    }

    String asText() {
        String text = metric("http_requests_total", "counter", requests.sum());
        if (knowsConnections) {
            // In this order: a connection that comes and goes in between must not make the difference negative.
            long gone = closed.sum();
            long all = accepted.sum();
            text += metric("http_connections_accepted_total", "counter", all);
            text += metric("http_connections_open", "gauge", all - gone);
        }
        return text;
    }

    private static String metric(String name, String type, long value) {
        return "# TYPE " + name + " " + type + "\n" + name + " " + value + "\n";
    }
}
