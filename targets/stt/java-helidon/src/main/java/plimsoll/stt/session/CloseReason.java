package plimsoll.stt.session;

/** Why the gateway ends a session, with the WebSocket close code that says so. */
public enum CloseReason {
    GOING_AWAY(1001),
    PROTOCOL(1002),
    FRAME_SIZE(1003),
    TOO_LARGE(1009),
    OVERFLOW(1013);

    private final int code;

    CloseReason(int code) {
        this.code = code;
    }

    public int code() {
        return code;
    }
}
