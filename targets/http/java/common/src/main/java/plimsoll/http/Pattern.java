package plimsoll.http;

/** What {@code GET /bytes/N} answers: the digits 0 to f, repeated. Made once; each answer is a slice of it. */
public final class Pattern {
    public static final int BYTES_MAX = 1_048_576;

    private static final byte[] BYTES = make();

    private Pattern() {}

    /** All of it. Callers share this array and must not change it. */
    public static byte[] bytes() {
        return BYTES;
    }

    /** The size that a path names, or -1 if {@code GET /bytes/text} is not found. */
    public static int size(String text) {
        long size = Digits.parseCanonical(text, BYTES_MAX);
        return size == 0 ? Digits.NONE : (int) size;
    }

    private static byte[] make() {
        byte[] bytes = new byte[BYTES_MAX];
        for (int i = 0; i < bytes.length; i++) {
            bytes[i] = (byte) Character.forDigit(i % 16, 16);
        }
        return bytes;
    }
}
