package plimsoll.stt.websocket;

import java.util.ArrayDeque;

/**
 * What the client has not taken yet, in order. Threads put frames in; one writer at a time takes them out, and a frame counts
 * as unsent until the writer comes for the next, which is when the kernel has taken all of it.
 */
public final class Outbox {
    private final ArrayDeque<byte[]> messages = new ArrayDeque<>(4);
    private byte[] pong;
    private byte[] close;
    private boolean closing;
    private boolean hasWriter;
    private boolean sendingMessage;

    /** Puts a message at the end. True if the caller must now start a writer. */
    public synchronized boolean offer(byte[] message) {
        if (closing) {
            return false;
        }
        messages.addLast(message);
        return needsWriter();
    }

    /** Answers a ping. A client that pings without reading has the last one answered, which RFC 6455 allows. */
    public synchronized boolean offerPong(byte[] frame) {
        if (closing) {
            return false;
        }
        pong = frame;
        return needsWriter();
    }

    /** Puts the last frame of all at the end, or before all messages that are not begun. The first close stands. */
    public synchronized boolean close(byte[] frame, boolean dropMessages) {
        if (closing) {
            return false;
        }
        closing = true;
        close = frame;
        if (dropMessages) {
            messages.clear();
        }
        return needsWriter();
    }

    private boolean needsWriter() {
        boolean needed = !hasWriter;
        hasWriter = true;
        return needed;
    }

    /** The next frame to write, all of it; null if there is none, and then the writer's work is done. */
    public synchronized byte[] next() {
        sendingMessage = false;
        byte[] frame;
        if (pong != null) {
            frame = pong;
            pong = null;
        } else if (!messages.isEmpty()) {
            sendingMessage = true;
            frame = messages.pollFirst();
        } else {
            frame = close;
            close = null;
        }
        hasWriter = frame != null;
        return frame;
    }

    /** Messages that the kernel has not taken wholly. */
    public synchronized int unsentMessages() {
        return messages.size() + (sendingMessage ? 1 : 0);
    }

    /** Whether the close, and so everything before it, has left. */
    public synchronized boolean isDone() {
        return closing && !hasWriter;
    }

    public synchronized boolean isClosing() {
        return closing;
    }
}
