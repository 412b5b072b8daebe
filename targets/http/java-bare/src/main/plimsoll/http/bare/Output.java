package plimsoll.http.bare;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.GatheringByteChannel;
import plimsoll.http.Answer;
import plimsoll.http.Routes;

/** One answer on its way to a connection. */
final class Output {
    /** A longer body is not copied behind its head, but written from where it is. */
    private static final int MOST_COPIED_BYTES = 4 << 10;

    private static final int LEAST_BYTES = 512;
    private static final int MOST_HEAD_BYTES = 512;
    /** Outside the heap, so that the socket writes from it without a copy. */
    private static final ByteBuffer PATTERN = ByteBuffer.allocateDirect(Routes.wholePattern().length)
            .put(Routes.wholePattern())
            .flip()
            .asReadOnlyBuffer();

    private static final byte[] CONTINUE = bytes("HTTP/1.1 100 Continue\r\n\r\n");
    private static final byte[] OK = bytes("HTTP/1.1 200 OK");
    private static final byte[] DATE = bytes("\r\nDate: ");
    private static final byte[] TYPE = bytes("\r\nContent-Type: ");
    private static final byte[] LENGTH = bytes("\r\nContent-Length: ");
    private static final byte[] ALLOW = bytes("\r\nAllow: ");
    private static final byte[] CLOSE = bytes("\r\nConnection: close");
    private static final byte[] KEEP_ALIVE = bytes("\r\nConnection: keep-alive");
    private static final byte[] END = bytes("\r\n\r\n");

    private ByteBuffer buffer = ByteBuffer.allocate(LEAST_BYTES);
    /** The head and the body, if the body is not in the buffer; else null. */
    private ByteBuffer[] parts;

    void putContinue() {
        begin(CONTINUE.length);
        buffer.put(CONTINUE).flip();
    }

    /** Takes an answer. Whatever was here before must have been written. */
    void put(Answer answer, byte[] date, boolean withBody, boolean close, boolean sayKeepAlive) {
        boolean copied = answer.length() <= MOST_COPIED_BYTES || !Routes.isPattern(answer.body());
        begin(MOST_HEAD_BYTES + (copied ? answer.length() : 0));
        if (answer.status() == 200) {
            buffer.put(OK);
        } else {
            buffer.put(bytes("HTTP/1.1 " + answer.status() + " " + Answer.reason(answer.status())));
        }
        buffer.put(DATE).put(date);
        buffer.put(TYPE).put(bytes(answer.contentType()));
        buffer.put(LENGTH).put(bytes(Integer.toString(answer.length())));
        if (answer.allow() != null) {
            buffer.put(ALLOW).put(bytes(answer.allow()));
        }
        if (close) {
            buffer.put(CLOSE);
        } else if (sayKeepAlive) {
            buffer.put(KEEP_ALIVE);
        }
        buffer.put(END);
        if (withBody && copied) {
            buffer.put(answer.body(), 0, answer.length());
        } else if (withBody) {
            parts = new ByteBuffer[] {buffer, PATTERN.slice(0, answer.length())};
        }
        buffer.flip();
    }

    /** Writes what it can. Returns whether that was all. */
    boolean writeTo(GatheringByteChannel channel) throws IOException {
        if (parts == null) {
            channel.write(buffer);
            return !buffer.hasRemaining();
        }
        channel.write(parts);
        if (parts[1].hasRemaining()) {
            return false;
        }
        parts = null;
        return true;
    }

    private void begin(int mostBytes) {
        if (mostBytes > buffer.capacity()) {
            buffer = ByteBuffer.allocate(mostBytes);
        }
        buffer.clear();
    }

    private static byte[] bytes(String text) {
        return text.getBytes(ISO_8859_1);
    }
}
