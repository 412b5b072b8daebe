package plimsoll.stt;

import java.util.Arrays;
import java.util.concurrent.atomic.LongAdder;

/** A Prometheus histogram over whole numbers, in frames or microseconds, that is rendered in frames or seconds. */
final class Histogram {
    private final String name;
    private final long[] bounds;
    private final double scale;
    private final LongAdder[] buckets;
    private final LongAdder sum = new LongAdder();

    /** Inclusive upper {@code bounds}, ascending; {@code scale} counted units are one rendered unit. */
    Histogram(String name, double scale, long... bounds) {
        this.name = name;
        this.scale = scale;
        this.bounds = bounds.clone();
        this.buckets = new LongAdder[bounds.length + 1];
        Arrays.setAll(buckets, _ -> new LongAdder());
    }

    void observe(long value) {
        int at = Arrays.binarySearch(bounds, value);
        buckets[at >= 0 ? at : -at - 1].increment();
        sum.add(value);
    }

    void render(StringBuilder text) {
        text.append("# TYPE ").append(name).append(" histogram\n");
        long count = 0;
        for (int i = 0; i < bounds.length; i++) {
            count += buckets[i].sum();
            bucket(text, Double.toString(bounds[i] / scale), count);
        }
        count += buckets[bounds.length].sum();
        bucket(text, "+Inf", count);
        text.append(name).append("_sum ").append(sum.sum() / scale).append('\n');
        text.append(name).append("_count ").append(count).append('\n');
    }

    private void bucket(StringBuilder text, String bound, long count) {
        text.append(name)
                .append("_bucket{le=\"")
                .append(bound)
                .append("\"} ")
                .append(count)
                .append('\n');
    }
}
