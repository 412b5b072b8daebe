package plimsoll.http.bare;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

/** The first line and the fields of a request. Strict, so that no other server reads something else into it. */
final class Head {
    private static final int OK = 0;

    private String method;
    private String path;
    private boolean http10;
    private int hosts;
    private int lengths;
    private long contentLength;
    private int encodings;
    private boolean close;
    private boolean keepAlive;
    private boolean expectsContinue;

    String method() {
        return method;
    }

    String path() {
        return path;
    }

    boolean isChunked() {
        return encodings == 1;
    }

    /** 0 where there is no body. */
    long contentLength() {
        return contentLength;
    }

    boolean expectsContinue() {
        return expectsContinue && !http10 && (isChunked() || contentLength > 0);
    }

    boolean isLast() {
        return close || http10 && !keepAlive;
    }

    boolean saysKeepAlive() {
        return http10 && !isLast();
    }

    /**
     * Parses a head.
     *
     * @param from its first byte
     * @param to behind its empty line. Each line up to there ends with CR and LF
     * @return 0, or the status to refuse it with
     */
    int parse(byte[] bytes, int from, int to) {
        int lineEnd = endOfLine(bytes, from);
        int status = parseRequestLine(bytes, from, lineEnd);
        int at = lineEnd + 2;
        while (status == OK && at < to - 2) {
            lineEnd = endOfLine(bytes, at);
            status = parseField(bytes, at, lineEnd);
            at = lineEnd + 2;
        }
        return status == OK ? checkTogether() : status;
    }

    private static int endOfLine(byte[] bytes, int from) {
        int at = from;
        while (bytes[at] != '\n') {
            at++;
        }
        return at - 1;
    }

    private int parseRequestLine(byte[] bytes, int from, int to) {
        int methodEnd = from;
        while (methodEnd < to && Ascii.isToken(bytes[methodEnd])) {
            methodEnd++;
        }
        int targetEnd = methodEnd + 1;
        while (targetEnd < to && Ascii.isVisible(bytes[targetEnd])) {
            targetEnd++;
        }
        if (methodEnd == from
                || targetEnd >= to
                || bytes[methodEnd] != ' '
                || bytes[targetEnd] != ' '
                || targetEnd == methodEnd + 1) {
            return 400;
        }
        method = methodOf(bytes, from, methodEnd);
        path = pathOf(bytes, methodEnd + 1, targetEnd);
        return parseVersion(bytes, targetEnd + 1, to);
    }

    private static String methodOf(byte[] bytes, int from, int to) {
        if (to - from == 3 && bytes[from] == 'G' && bytes[from + 1] == 'E' && bytes[from + 2] == 'T') {
            return "GET";
        }
        return new String(bytes, from, to - from, ISO_8859_1);
    }

    private static String pathOf(byte[] bytes, int from, int to) {
        int end = from;
        while (end < to && bytes[end] != '?' && bytes[end] != '#') {
            end++;
        }
        String target = new String(bytes, from, end - from, ISO_8859_1);
        if (target.startsWith("/")) {
            return target;
        }
        int host = target.indexOf("://");
        if (host < 0) {
            return target;
        }
        int slash = target.indexOf('/', host + 3);
        return slash < 0 ? "/" : target.substring(slash);
    }

    private int parseVersion(byte[] bytes, int from, int to) {
        boolean isVersion = to - from == 8
                && Ascii.isWord(bytes, from, from + 5, "http/")
                && bytes[from] == 'H'
                && bytes[from + 1] == 'T'
                && bytes[from + 2] == 'T'
                && bytes[from + 3] == 'P'
                && Ascii.isDigit(bytes[from + 5])
                && bytes[from + 6] == '.'
                && Ascii.isDigit(bytes[from + 7]);
        if (!isVersion) {
            return 400;
        }
        http10 = bytes[from + 7] == '0';
        return bytes[from + 5] == '1' ? OK : 505;
    }

    private int parseField(byte[] bytes, int from, int to) {
        int nameEnd = from;
        while (nameEnd < to && Ascii.isToken(bytes[nameEnd])) {
            nameEnd++;
        }
        if (nameEnd == from || nameEnd == to || bytes[nameEnd] != ':') {
            return 400;
        }
        for (int at = nameEnd + 1; at < to; at++) {
            if (!Ascii.isText(bytes[at])) {
                return 400;
            }
        }
        int valueFrom = nameEnd + 1;
        int valueTo = to;
        while (valueFrom < valueTo && Ascii.isBlank(bytes[valueFrom])) {
            valueFrom++;
        }
        while (valueTo > valueFrom && Ascii.isBlank(bytes[valueTo - 1])) {
            valueTo--;
        }
        return takeField(bytes, from, nameEnd, valueFrom, valueTo);
    }

    /** Looks at the fields that say how the request is to be read; by the length of their names first. */
    private int takeField(byte[] bytes, int from, int nameEnd, int valueFrom, int valueTo) {
        switch (nameEnd - from) {
            case 4 -> {
                if (Ascii.isWord(bytes, from, nameEnd, "host")) {
                    hosts++;
                }
            }
            case 6 -> {
                if (Ascii.isWord(bytes, from, nameEnd, "expect")) {
                    expectsContinue = true;
                    return Ascii.isWord(bytes, valueFrom, valueTo, "100-continue") ? OK : 417;
                }
            }
            case 10 -> {
                if (Ascii.isWord(bytes, from, nameEnd, "connection")) {
                    takeConnectionOptions(bytes, valueFrom, valueTo);
                }
            }
            case 14 -> {
                if (Ascii.isWord(bytes, from, nameEnd, "content-length")) {
                    return takeLength(bytes, valueFrom, valueTo);
                }
            }
            case 17 -> {
                if (Ascii.isWord(bytes, from, nameEnd, "transfer-encoding")) {
                    encodings++;
                    return Ascii.isWord(bytes, valueFrom, valueTo, "chunked") ? OK : 501;
                }
            }
            default -> {
                // No other field changes what this server does.
            }
        }
        return OK;
    }

    private void takeConnectionOptions(byte[] bytes, int from, int to) {
        int at = from;
        while (at < to) {
            int comma = at;
            while (comma < to && bytes[comma] != ',') {
                comma++;
            }
            int end = comma;
            while (at < end && Ascii.isBlank(bytes[at])) {
                at++;
            }
            while (end > at && Ascii.isBlank(bytes[end - 1])) {
                end--;
            }
            close |= Ascii.isWord(bytes, at, end, "close");
            keepAlive |= Ascii.isWord(bytes, at, end, "keep-alive");
            at = comma + 1;
        }
    }

    private int takeLength(byte[] bytes, int from, int to) {
        lengths++;
        if (from == to) {
            return 400;
        }
        long value = 0;
        for (int at = from; at < to; at++) {
            if (!Ascii.isDigit(bytes[at])) {
                return 400;
            }
            // A longer number than a long is too long a body, and stays one.
            value = value > Long.MAX_VALUE / 100 ? value : value * 10 + (bytes[at] - '0');
        }
        contentLength = value;
        return OK;
    }

    private int checkTogether() {
        boolean hostIsRight = hosts == 1 || hosts == 0 && http10;
        boolean lengthIsRight = lengths + encodings <= 1 && (encodings == 0 || !http10);
        return hostIsRight && lengthIsRight ? OK : 400;
    }
}
