package plimsoll.http;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

/**
 * What to answer, without the protocol's part: the first {@code length} bytes of {@code body}.
 *
 * @param allow the methods that the path has, or null where the answer does not have to say so
 */
public record Answer(int status, String contentType, String allow, byte[] body, int length) {
    public static final String TEXT = "text/plain";

    static Answer of(int status, String contentType, String text) {
        byte[] body = text.getBytes(ISO_8859_1);
        return new Answer(status, contentType, null, body, body.length);
    }

    static Answer wrongMethod(String allow) {
        byte[] body = "method not allowed\n".getBytes(ISO_8859_1);
        return new Answer(405, TEXT, allow, body, body.length);
    }

    /** An answer that says no more than its status does. */
    public static Answer refusal(int status) {
        return of(status, TEXT, reason(status).toLowerCase(java.util.Locale.ROOT) + "\n");
    }

    /** The words for the statuses that these servers answer with. */
    public static String reason(int status) {
        return switch (status) {
            case 200 -> "OK";
            case 400 -> "Bad Request";
            case 404 -> "Not Found";
            case 405 -> "Method Not Allowed";
            case 413 -> "Content Too Large";
            case 417 -> "Expectation Failed";
            case 431 -> "Request Header Fields Too Large";
            case 500 -> "Internal Server Error";
            case 501 -> "Not Implemented";
            case 505 -> "HTTP Version Not Supported";
            default -> throw new IllegalArgumentException("no reason is known for status " + status);
        };
    }
}
