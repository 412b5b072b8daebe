package plimsoll.http.bare;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.Locale;

/** The time in whole seconds, since a request has no need of a finer one. Advanced once a second, by one thread. */
final class Clock {
    private static final DateTimeFormatter HTTP_DATE = DateTimeFormatter.ofPattern(
                    "EEE, dd MMM yyyy HH:mm:ss 'GMT'", Locale.US)
            .withZone(ZoneOffset.UTC);

    private final long startNs = System.nanoTime();
    private volatile int second;
    private volatile byte[] date;

    Clock() {
        advance();
    }

    void advance() {
        second = (int) ((System.nanoTime() - startNs) / 1_000_000_000L);
        date = HTTP_DATE.format(Instant.now()).getBytes(ISO_8859_1);
    }

    /** Seconds since the start. */
    int second() {
        return second;
    }

    /** The value of a Date field. */
    byte[] date() {
        return date;
    }
}
