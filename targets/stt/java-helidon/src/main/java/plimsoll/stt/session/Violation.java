package plimsoll.stt.session;

/** The client broke a rule, and the session ends with a close code. An everyday event: it carries no stack trace. */
public final class Violation extends Exception {
    private static final long serialVersionUID = 1;

    private final CloseReason reason;

    public Violation(CloseReason reason, String message) {
        super(message, null, false, false);
        this.reason = reason;
    }

    public CloseReason reason() {
        return reason;
    }
}
