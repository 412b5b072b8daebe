package plimsoll.http;

/** Decimal digits and nothing else. Java's own parsers would also take a sign, and digits of other scripts. */
final class Digits {
    static final int NONE = -1;

    private Digits() {}

    /** The number that {@code text} is, or {@link #NONE} if it holds anything but digits or is above {@code max}. */
    static long parse(String text, long max) {
        // 18 digits always fit.
        if (text.isEmpty() || text.length() > 18) {
            return NONE;
        }
        long value = 0;
        for (int i = 0; i < text.length(); i++) {
            char digit = text.charAt(i);
            if (digit < '0' || digit > '9') {
                return NONE;
            }
            value = value * 10 + (digit - '0');
        }
        return value <= max ? value : NONE;
    }

    /** As {@link #parse}, and leading zeros are refused: a number has one spelling. */
    static long parseCanonical(String text, long max) {
        return text.length() > 1 && text.charAt(0) == '0' ? NONE : parse(text, max);
    }
}
