package plimsoll.http;

/** What {@code GET /json/K} answers. Serialisers write its components in this order. */
public record Item(long id, String name, boolean even) {
    /** 2^53 - 1: the largest whole number that every reader of JSON holds exactly. */
    private static final long ID_MAX = (1L << 53) - 1;

    public static Item of(long id) {
        return new Item(id, "item " + id, id % 2 == 0);
    }

    /** The number that a path names, or -1 if {@code GET /json/text} is not found. */
    public static long id(String text) {
        return Digits.parseCanonical(text, ID_MAX);
    }
}
