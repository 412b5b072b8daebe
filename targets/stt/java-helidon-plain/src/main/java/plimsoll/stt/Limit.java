package plimsoll.stt;

import java.util.concurrent.atomic.AtomicInteger;

/** How many of something exist now, and how many may: sessions for admission, requests for the gateway-wide cap. */
final class Limit {
    private final AtomicInteger inUse = new AtomicInteger();
    private final int max;

    /** A limit of {@code max}, where 0 means none. */
    Limit(int max) {
        this.max = max == 0 ? Integer.MAX_VALUE : max;
    }

    /** Takes a unit, unless all are taken. */
    boolean tryAcquire() {
        return inUse.getAndUpdate(now -> Math.min(now + 1, max)) < max;
    }

    void release() {
        inUse.decrementAndGet();
    }

    int inUse() {
        return inUse.get();
    }
}
