package plimsoll.stt.websocket;

import java.nio.ByteBuffer;
import java.util.OptionalInt;

/** Writes the frames that a server sends (RFC 6455): whole and without a mask. */
public final class Frames {
    private static final int FIN = 0x80;
    private static final int TEXT = 0x1;
    private static final int CLOSE = 0x8;
    private static final int PONG = 0xA;

    private static final int SHORT_LENGTH_MAX = 125;
    private static final int MEDIUM_LENGTH_MAX = 0xFFFF;

    private Frames() {}

    public static byte[] text(byte[] utf8) {
        return frame(TEXT, utf8);
    }

    public static byte[] pong(byte[] payload) {
        return frame(PONG, payload);
    }

    public static byte[] close(OptionalInt code) {
        byte[] payload =
                code.isPresent() ? new byte[] {(byte) (code.getAsInt() >>> 8), (byte) code.getAsInt()} : new byte[0];
        return frame(CLOSE, payload);
    }

    private static byte[] frame(int opcode, byte[] payload) {
        if (payload.length > MEDIUM_LENGTH_MAX) {
            throw new IllegalArgumentException("no message of this gateway is so long");
        }
        boolean isShort = payload.length <= SHORT_LENGTH_MAX;
        ByteBuffer frame = ByteBuffer.allocate((isShort ? 2 : 4) + payload.length);
        frame.put((byte) (FIN | opcode));
        if (isShort) {
            frame.put((byte) payload.length);
        } else {
            frame.put((byte) 126).putShort((short) payload.length);
        }
        return frame.put(payload).array();
    }
}
