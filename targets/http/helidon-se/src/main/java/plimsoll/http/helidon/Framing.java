package plimsoll.http.helidon;

import io.helidon.http.Header;
import io.helidon.http.HeaderNames;
import io.helidon.http.Headers;

/** Whether it is beyond doubt where a request of HTTP/1.1 ends (RFC 9112, section 6). Helidon 4.2.3 lets doubtful ones pass. */
final class Framing {
    private Framing() {}

    static boolean isSound(Headers headers) {
        boolean hasLength = headers.contains(HeaderNames.CONTENT_LENGTH);
        if (headers.contains(HeaderNames.TRANSFER_ENCODING)) {
            return !hasLength
                    && headers.get(HeaderNames.TRANSFER_ENCODING).get().equalsIgnoreCase("chunked");
        }
        return !hasLength || isOneNumber(headers.get(HeaderNames.CONTENT_LENGTH));
    }

    private static boolean isOneNumber(Header length) {
        return length.valueCount() == 1 && length.get().chars().allMatch(c -> c >= '0' && c <= '9');
    }
}
