package plimsoll.stt;

/** One row of the contract's table of errors. */
enum FailureKind {
    TIMEOUT("inference_request", "timeout", true),
    CONNECTION_RESET("inference_request", "connection_reset", true),
    HTTP_429("inference_request", "http_429", true),
    HTTP_5XX("inference_request", "http_5xx", true),
    HTTP_4XX("inference_request", "http_4xx", false),
    PARSE_ERROR("inference_response_parse", "parse_error", false),
    OVERFLOW("input_buffer", "overflow", false);

    final String stage;
    final String label;
    final boolean retryable;

    FailureKind(String stage, String label, boolean retryable) {
        this.stage = stage;
        this.label = label;
        this.retryable = retryable;
    }
}
