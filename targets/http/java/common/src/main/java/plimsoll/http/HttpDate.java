package plimsoll.http;

import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.Locale;

/** The value of {@code Date}, for libraries that leave it to the application. Formatted once a second. */
public final class HttpDate {
    /** Two digits for the day, as RFC 9110 wants; the JDK's own RFC_1123_DATE_TIME may write one. */
    private static final DateTimeFormatter FORMAT = DateTimeFormatter.ofPattern(
                    "EEE, dd MMM yyyy HH:mm:ss 'GMT'", Locale.ROOT)
            .withZone(ZoneOffset.UTC);

    private record Entry(long second, String text) {}

    private static volatile Entry latest = new Entry(-1, "");

    private HttpDate() {}

    public static String now() {
        long second = System.currentTimeMillis() / 1000;
        Entry entry = latest;
        if (entry.second != second) {
            entry = new Entry(second, FORMAT.format(Instant.ofEpochSecond(second)));
            latest = entry;
        }
        return entry.text;
    }
}
