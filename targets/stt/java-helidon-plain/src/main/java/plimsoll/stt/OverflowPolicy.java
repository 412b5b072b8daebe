package plimsoll.stt;

/** What happens to a frame when the buffer is full. */
enum OverflowPolicy {
    /** Makes room: the oldest buffered frame goes. */
    DROP_OLDEST,
    /** Keeps what is there: the new frame goes. */
    DROP_NEWEST,
    /** Ends the session. */
    CLOSE
}
