package plimsoll.stt.support;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;

/** WebSocket frames as a client sends them: masked. */
public final class ClientFrames {
    private static final byte[] MASK = {0x12, 0x34, 0x56, 0x78};

    private ClientFrames() {}

    public static byte[] header(int first, long length) {
        ByteBuffer header = ByteBuffer.allocate(14).put((byte) first);
        if (length >= 0 && length <= 125) {
            header.put((byte) (0x80 | length));
        } else if (length >= 0 && length <= 0xFFFF) {
            header.put((byte) (0x80 | 126)).putShort((short) length);
        } else {
            header.put((byte) (0x80 | 127)).putLong(length);
        }
        header.put(MASK);
        return Arrays.copyOf(header.array(), header.position());
    }

    public static byte[] frame(int first, byte[] payload) {
        ByteArrayOutputStream frame = new ByteArrayOutputStream();
        frame.writeBytes(header(first, payload.length));
        for (int i = 0; i < payload.length; i++) {
            frame.write(payload[i] ^ MASK[i % MASK.length]);
        }
        return frame.toByteArray();
    }

    public static byte[] text(String text) {
        return frame(0x81, text.getBytes(StandardCharsets.UTF_8));
    }

    public static byte[] binary(byte[] payload) {
        return frame(0x82, payload);
    }

    public static byte[] ping(byte[] payload) {
        return frame(0x89, payload);
    }

    public static byte[] close(int code) {
        return frame(0x88, new byte[] {(byte) (code >>> 8), (byte) code});
    }

    /** A binary message in fragments of these sizes as far as they fit; the last takes the rest. */
    public static byte[] fragmented(byte[] payload, List<Integer> sizes) {
        ByteArrayOutputStream frames = new ByteArrayOutputStream();
        int at = 0;
        int opcode = 0x02;
        for (int size : sizes) {
            int end = Math.min(payload.length, at + size);
            frames.writeBytes(frame(opcode, Arrays.copyOfRange(payload, at, end)));
            at = end;
            opcode = 0;
        }
        frames.writeBytes(frame(0x80 | opcode, Arrays.copyOfRange(payload, at, payload.length)));
        return frames.toByteArray();
    }
}
