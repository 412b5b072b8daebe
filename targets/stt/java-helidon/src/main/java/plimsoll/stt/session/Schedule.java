package plimsoll.stt.session;

/**
 * The absolute schedule of flushes: {@code origin + k * interval} for k = 1, 2, … Ticks are computed from each other and
 * never from "now", so a late one moves no other.
 */
final class Schedule {
    private final long intervalNanos;
    private long nextNanos;

    Schedule(long originNanos, long intervalNanos) {
        if (intervalNanos <= 0) {
            throw new IllegalArgumentException("an interval is longer than nothing");
        }
        this.intervalNanos = intervalNanos;
        this.nextNanos = originNanos + intervalNanos;
    }

    long nextNanos() {
        return nextNanos;
    }

    /** Moves on past the next tick. */
    void advance() {
        nextNanos += intervalNanos;
    }

    /** Moves on past every tick that is due: one flush takes all that they could take. */
    void advancePast(long nowNanos) {
        if (nextNanos <= nowNanos) {
            nextNanos += ((nowNanos - nextNanos) / intervalNanos + 1) * intervalNanos;
        }
    }
}
