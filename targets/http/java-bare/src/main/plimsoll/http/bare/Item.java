package plimsoll.http.bare;

import plimsoll.http.Checksum;

/** What the parser found, and what has to be answered, in this order. */
sealed interface Item {
    /**
     * A whole request.
     *
     * @param path without scheme, host and query
     * @param body the sum of its body, or null where the path has no use for one
     * @param close whether the connection ends with the answer
     * @param sayKeepAlive whether the answer has to say that it does not: only clients of HTTP/1.0 need to be told
     */
    record Request(String method, String path, Checksum body, boolean close, boolean sayKeepAlive) implements Item {}

    /** The client waits for word that it may send its body. */
    record Continue() implements Item {}

    /** What came is not HTTP, or more than this server takes. Nothing that follows can be understood. */
    record Refusal(int status) implements Item {}
}
