package plimsoll.stt;

import java.util.Locale;

/** Why a tick with audio to flush did nothing. */
enum Deferral {
    /** The session's request has not come back. */
    INFLIGHT,
    /** The gateway has {@code MAX_INFLIGHT_JOBS} requests in flight. */
    JOBS,
    /** The client has not taken {@code OUTBOX_MESSAGES} messages. */
    OUTBOX;

    /** The label in the metrics. */
    String label() {
        return name().toLowerCase(Locale.ROOT);
    }
}
