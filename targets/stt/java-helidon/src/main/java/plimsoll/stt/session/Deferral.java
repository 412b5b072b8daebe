package plimsoll.stt.session;

/** Why a tick with audio to flush did nothing. */
public enum Deferral {
    /** The session's request has not come back. */
    INFLIGHT("inflight"),
    /** The gateway has {@code MAX_INFLIGHT_JOBS} requests in flight. */
    JOBS("jobs"),
    /** The client has not taken {@code OUTBOX_MESSAGES} messages. */
    OUTBOX("outbox");

    private final String label;

    Deferral(String label) {
        this.label = label;
    }

    /** The label in the metrics. */
    public String label() {
        return label;
    }
}
