package plimsoll.stt.session;

import java.util.List;
import java.util.function.BooleanSupplier;
import plimsoll.stt.message.GatewayError;

/** What a tick came to. */
public sealed interface Tick {
    /** Nothing waited, or it is not time yet. */
    record Nothing() implements Tick {}

    /** Something waited, and has to wait on. */
    record Deferred(Deferral reason, List<GatewayError> errors) implements Tick {}

    /** Dropped frames to be named, and nothing to be sent. */
    record Reported(List<GatewayError> errors) implements Tick {}

    /** A batch to be sent, after dropped frames that come before it have been named. */
    record Flushed(List<GatewayError> errors, Batch batch, Flight flight) implements Tick {}

    /** What the world outside the session allows at a tick. */
    record Leave(int unsentMessages, BooleanSupplier takeJob) {}
}
