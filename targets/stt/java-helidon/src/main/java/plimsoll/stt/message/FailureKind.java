package plimsoll.stt.message;

/** One row of the contract's table of errors; {@code stage}, {@code kind} and {@code retryable} follow from it. */
public enum FailureKind {
    TIMEOUT(Stage.REQUEST, "timeout", true),
    CONNECTION_RESET(Stage.REQUEST, "connection_reset", true),
    HTTP_429(Stage.REQUEST, "http_429", true),
    HTTP_5XX(Stage.REQUEST, "http_5xx", true),
    HTTP_4XX(Stage.REQUEST, "http_4xx", false),
    PARSE_ERROR(Stage.RESPONSE_PARSE, "parse_error", false),
    OVERFLOW(Stage.INPUT_BUFFER, "overflow", false);

    /** The part of the gateway that failed. */
    private enum Stage {
        REQUEST("inference_request"),
        RESPONSE_PARSE("inference_response_parse"),
        INPUT_BUFFER("input_buffer");

        private final String label;

        Stage(String label) {
            this.label = label;
        }
    }

    private final Stage stage;
    private final String label;
    private final boolean retryable;

    FailureKind(Stage stage, String label, boolean retryable) {
        this.stage = stage;
        this.label = label;
        this.retryable = retryable;
    }

    public String stage() {
        return stage.label;
    }

    public String label() {
        return label;
    }

    /** Whether the same audio could have been answered a moment later. */
    public boolean retryable() {
        return retryable;
    }
}
