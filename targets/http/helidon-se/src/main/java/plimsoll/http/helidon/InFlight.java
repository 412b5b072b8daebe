package plimsoll.http.helidon;

import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;

/** How many streams of HTTP/2 have a request that is not answered. */
final class InFlight {
    private static final long POLL_NS = 5_000_000;

    private final AtomicInteger count = new AtomicInteger();

    void begin() {
        count.incrementAndGet();
    }

    void end() {
        count.decrementAndGet();
    }

    /** Only the drain waits, so it looks from time to time. */
    void awaitNone() {
        while (count.get() != 0) {
            LockSupport.parkNanos(POLL_NS);
        }
    }
}
