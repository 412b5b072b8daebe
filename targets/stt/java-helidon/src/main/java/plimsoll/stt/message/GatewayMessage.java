package plimsoll.stt.message;

import plimsoll.stt.session.Span;

/** A message to the client. Each names a contiguous range of frames. */
public sealed interface GatewayMessage permits Partial, GatewayError {
    Span span();

    /** As JSON in UTF-8. */
    byte[] toJson();
}
