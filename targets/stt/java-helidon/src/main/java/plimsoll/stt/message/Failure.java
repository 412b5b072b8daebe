package plimsoll.stt.message;

import java.util.OptionalInt;

/** Why frames have no transcript, and what is known about it. */
public record Failure(FailureKind kind, String message, OptionalInt status) implements Answer {
    /** Most characters of a message that quotes from elsewhere. */
    private static final int MESSAGE_CHARS_MAX = 200;

    public Failure {
        if (message.length() > MESSAGE_CHARS_MAX) {
            message = message.substring(0, MESSAGE_CHARS_MAX);
        }
    }

    public static Failure timeout() {
        return new Failure(FailureKind.TIMEOUT, "no answer from inference in time", OptionalInt.empty());
    }

    /** The connection could not be made, or it or the stream was lost before the answer was whole. */
    public static Failure connection(String cause) {
        return new Failure(FailureKind.CONNECTION_RESET, "inference connection: " + cause, OptionalInt.empty());
    }

    /** An answer with any status but 200. */
    public static Failure status(int status) {
        FailureKind kind =
                switch (status / 100) {
                    case 4 -> status == 429 ? FailureKind.HTTP_429 : FailureKind.HTTP_4XX;
                    case 5 -> FailureKind.HTTP_5XX;
                    // Neither the promised answer nor an HTTP error: nothing that the contract lets us read.
                    default -> FailureKind.PARSE_ERROR;
                };
        return new Failure(kind, "inference answered with status " + status, OptionalInt.of(status));
    }

    /** A 200 whose body is not the strict JSON. */
    public static Failure parse(String cause) {
        return new Failure(FailureKind.PARSE_ERROR, "inference answer: " + cause, OptionalInt.of(200));
    }

    /** Frames that the overflow policy dropped. */
    public static Failure overflow(long frames) {
        return new Failure(
                FailureKind.OVERFLOW, frames + " frames dropped: the input buffer is full", OptionalInt.empty());
    }
}
