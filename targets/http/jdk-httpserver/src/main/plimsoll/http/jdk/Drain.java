package plimsoll.http.jdk;

import com.sun.net.httpserver.HttpServer;

/** Runs when the JVM has been told to end. It ends here, with 0: by itself the JVM would report the signal. */
final class Drain implements Runnable {
    private static final long TICK_MS = 10;
    /** Requests that have come and not reached the handler have this long to do so. */
    private static final long QUIET_MS = 200;

    private final HttpServer server;
    private final InFlight inFlight;
    private final long waitMs;

    Drain(HttpServer server, InFlight inFlight, long waitMs) {
        this.server = server;
        this.inFlight = inFlight;
        this.waitMs = waitMs;
    }

    /**
     * The library's own {@code stop} counts requests whose client has gone as being answered for ever. It alone would
     * often wait for all of its time. Its time is in whole seconds, too.
     */
    @Override
    public void run() {
        inFlight.drain();
        Thread stop = Thread.ofPlatform().daemon().start(() -> server.stop((int) (waitMs / 1000 + 1)));
        long endNs = System.nanoTime() + waitMs * 1_000_000;
        long quietMs = 0;
        try {
            while (System.nanoTime() < endNs && stop.isAlive() && quietMs < QUIET_MS) {
                Thread.sleep(TICK_MS);
                quietMs = inFlight.isEmpty() ? quietMs + TICK_MS : 0;
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        Runtime.getRuntime().halt(0);
    }
}
