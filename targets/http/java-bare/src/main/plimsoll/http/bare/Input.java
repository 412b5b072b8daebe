package plimsoll.http.bare;

import java.nio.ByteBuffer;

/** The bytes that have been read from a connection and not been parsed yet. */
final class Input {
    private static final int LEAST_BYTES = 4 << 10;
    static final int MOST_BYTES = 32 << 10;

    private ByteBuffer buffer = ByteBuffer.allocate(LEAST_BYTES);
    private byte[] bytes = buffer.array();
    private int start;
    private int end;

    /** The array that the bytes are in. Valid until the next {@link #room}. */
    byte[] bytes() {
        return bytes;
    }

    int start() {
        return start;
    }

    int end() {
        return end;
    }

    boolean isEmpty() {
        return start == end;
    }

    boolean isFull() {
        return end - start == MOST_BYTES;
    }

    /** Takes away what has been parsed. */
    void consume(int count) {
        start += count;
        if (start == end) {
            start = 0;
            end = 0;
        }
    }

    /** Where to read to, at least one byte unless {@link #isFull}. Say then how much it was: {@link #filled}. */
    ByteBuffer room() {
        if (end == bytes.length) {
            makeRoom();
        }
        return buffer.clear().position(end);
    }

    /** As many bytes were put into the room. If they fill it there is probably more, and the next room is larger. */
    void filled(int count) {
        end += count;
        if (end == bytes.length && bytes.length < MOST_BYTES) {
            moveTo(ByteBuffer.allocate(2 * bytes.length));
        }
    }

    private void makeRoom() {
        moveTo(buffer);
    }

    private void moveTo(ByteBuffer other) {
        System.arraycopy(bytes, start, other.array(), 0, end - start);
        buffer = other;
        bytes = other.array();
        end -= start;
        start = 0;
    }
}
