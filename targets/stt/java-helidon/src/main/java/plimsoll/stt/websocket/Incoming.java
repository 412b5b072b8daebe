package plimsoll.stt.websocket;

import java.util.OptionalInt;

/** What a client sent, as far as the session cares. */
public sealed interface Incoming {
    /** A whole binary message of one frame's size. The array is the decoder's and is used again for the next one. */
    record Frame(byte[] bytes) implements Incoming {}

    record Text(String text) implements Incoming {}

    record Ping(byte[] payload) implements Incoming {}

    /** The client closes, with this code if any. */
    record Close(OptionalInt code) implements Incoming {}
}
