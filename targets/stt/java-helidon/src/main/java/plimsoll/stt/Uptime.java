package plimsoll.stt;

/** The monotonic clock, counted from about the start of the process, so that times can be compared and added plainly. */
public final class Uptime {
    private static final long ORIGIN_NANOS = System.nanoTime();

    private Uptime() {}

    public static long nanos() {
        return System.nanoTime() - ORIGIN_NANOS;
    }
}
