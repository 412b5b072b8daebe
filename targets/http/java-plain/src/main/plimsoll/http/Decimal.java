package plimsoll.http;

/** Decimal numbers as HTTP and the contract have them: digits alone, without a sign. */
public final class Decimal {
    private Decimal() {}

    /** The number, or -1 if {@code text} is none, has a leading zero, or is above {@code max}. */
    public static long parse(String text, long max) {
        return parse(text, 0, max);
    }

    /** The number that {@code text} is from {@code start} to its end, or -1. */
    public static long parse(String text, int start, long max) {
        int length = text.length() - start;
        if (length < 1 || length > 18 || length > 1 && text.charAt(start) == '0') {
            return -1;
        }
        long value = 0;
        for (int at = start; at < text.length(); at++) {
            int digit = text.charAt(at) - '0';
            if (digit < 0 || digit > 9) {
                return -1;
            }
            value = value * 10 + digit;
        }
        return value <= max ? value : -1;
    }
}
