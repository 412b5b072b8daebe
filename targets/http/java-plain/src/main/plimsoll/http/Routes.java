package plimsoll.http;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

/** The contract's routes. */
public final class Routes {
    private static final int MAX_PATTERN_BYTES = 1 << 20;
    private static final long MAX_ITEM = (1L << 53) - 1;
    private static final String BYTES = "/bytes/";
    private static final String JSON = "/json/";
    private static final byte[] PATTERN = pattern();

    private final Counts counts;

    public Routes(Counts counts) {
        this.counts = counts;
    }

    /** Whether {@code body} of {@link #answer} is asked for: the others do not look at it. */
    public static boolean takesBody(String path) {
        return path.equals("/sum");
    }

    /** Whether the answer's body is the beginning of the pattern, which is the same array each time. */
    public static boolean isPattern(byte[] body) {
        return body == PATTERN;
    }

    /** The whole pattern, 1 MiB. */
    public static byte[] wholePattern() {
        return PATTERN.clone();
    }

    /**
     * Answers one request.
     *
     * @param path without the query
     * @param body of the request, if {@link #takesBody}
     */
    public Answer answer(String method, String path, Checksum body) {
        counts.request();
        if (takesBody(path)) {
            return method.equals("POST") ? Answer.of(200, Answer.TEXT, body.toString()) : Answer.wrongMethod("POST");
        }
        boolean read = method.equals("GET") || method.equals("HEAD");
        Answer answer = resource(path);
        return read || answer.status() == 404 ? answer : Answer.wrongMethod("GET, HEAD");
    }

    private Answer resource(String path) {
        if (path.equals("/") || path.equals("/healthz")) {
            return Answer.of(200, Answer.TEXT, "ok");
        }
        if (path.startsWith(BYTES)) {
            int length = (int) Decimal.parse(path, BYTES.length(), MAX_PATTERN_BYTES);
            return length < 1
                    ? Answer.refusal(404)
                    : new Answer(200, "application/octet-stream", null, PATTERN, length);
        }
        if (path.startsWith(JSON)) {
            long item = Decimal.parse(path, JSON.length(), MAX_ITEM);
            return item < 0 ? Answer.refusal(404) : Answer.of(200, "application/json", json(item));
        }
        if (path.equals("/metrics")) {
            return Answer.of(200, "text/plain; version=0.0.4", counts.asText());
        }
        return Answer.refusal(404);
    }

    /** By hand: the JDK has no serialiser for JSON. */
    private static String json(long item) {
        return "{\"id\":" + item + ",\"name\":\"item " + item + "\",\"even\":" + (item % 2 == 0) + "}";
    }

    private static byte[] pattern() {
        byte[] digits = "0123456789abcdef".getBytes(ISO_8859_1);
        byte[] pattern = new byte[MAX_PATTERN_BYTES];
        for (int at = 0; at < pattern.length; at++) {
            pattern[at] = digits[at % digits.length];
        }
        return pattern;
    }
}
