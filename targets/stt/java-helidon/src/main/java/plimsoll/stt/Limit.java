package plimsoll.stt;

import java.util.concurrent.atomic.AtomicInteger;

/** How many of something exist now, and how many may: sessions for admission, requests for the gateway-wide cap. */
public final class Limit {
    private final AtomicInteger inUse = new AtomicInteger();
    private final int max;

    /** A limit of {@code max}, where 0 means none. */
    public Limit(int max) {
        this.max = max == 0 ? Integer.MAX_VALUE : max;
    }

    /** Takes a unit, unless all are taken. */
    public boolean tryAcquire() {
        int now = inUse.get();
        while (now < max) {
            if (inUse.compareAndSet(now, now + 1)) {
                return true;
            }
            now = inUse.get();
        }
        return false;
    }

    public void release() {
        inUse.decrementAndGet();
    }

    public int inUse() {
        return inUse.get();
    }
}
