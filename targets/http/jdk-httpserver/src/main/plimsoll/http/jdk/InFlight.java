package plimsoll.http.jdk;

import java.util.concurrent.atomic.LongAdder;

/** How many requests are being answered, and whether the server is about to end. */
final class InFlight {
    private final LongAdder begun = new LongAdder();
    private final LongAdder ended = new LongAdder();
    private volatile boolean draining;

    void begin() {
        begun.increment();
    }

    void end() {
        ended.increment();
    }

    boolean isEmpty() {
        // In this order, so that a request that begins in between counts as being answered.
        long before = ended.sum();
        return begun.sum() == before;
    }

    void drain() {
        draining = true;
    }

    boolean isDraining() {
        return draining;
    }
}
