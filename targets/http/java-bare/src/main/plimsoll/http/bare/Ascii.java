package plimsoll.http.bare;

/** Classes of characters in HTTP (RFC 9110, section 5.6), by byte. */
final class Ascii {
    private static final boolean[] TOKEN = new boolean[256];

    static {
        for (int c = '!'; c < 127; c++) {
            TOKEN[c] = "\"(),/:;<=>?@[\\]{}".indexOf(c) < 0;
        }
    }

    private Ascii() {}

    static boolean isToken(byte c) {
        return TOKEN[c & 0xff];
    }

    /** Whether a target may have it: a visible character of ASCII. */
    static boolean isVisible(byte c) {
        return c > ' ' && c < 127;
    }

    /** Whether the value of a field may have it: visible, blank, tab, or not ASCII. */
    static boolean isText(byte c) {
        return c >= ' ' && c < 127 || c == '\t' || c < 0;
    }

    static boolean isBlank(byte c) {
        return c == ' ' || c == '\t';
    }

    static boolean isDigit(byte c) {
        return c >= '0' && c <= '9';
    }

    /** The value of a hexadecimal digit, or -1. */
    static int hexDigit(byte c) {
        return c < 0 ? -1 : Character.digit((char) c, 16);
    }

    /** Whether the bytes are this word, in lower case or not. The word is in lower case. */
    static boolean isWord(byte[] bytes, int from, int to, String word) {
        if (to - from != word.length()) {
            return false;
        }
        for (int at = 0; at < word.length(); at++) {
            int c = bytes[from + at];
            int lower = c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c;
            if (lower != word.charAt(at)) {
                return false;
            }
        }
        return true;
    }
}
