package plimsoll.stt.websocket;

import io.helidon.common.buffers.BufferData;
import java.io.ByteArrayOutputStream;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.OptionalInt;
import plimsoll.stt.session.CloseReason;
import plimsoll.stt.session.Session;
import plimsoll.stt.session.Violation;

/**
 * Decodes what clients send (RFC 6455), bytes in and messages out. It refuses from a frame's header alone what the contract
 * refuses, so that nothing is buffered that is not wanted, and holds one frame of audio between two reads at most.
 */
public final class FrameDecoder {
    /** Longest message of any kind, and the longest text that is kept. */
    private static final int MESSAGE_BYTES_MAX = 64 * 1024;

    private static final int CONTROL_BYTES_MAX = 125;
    private static final int MASK_BYTES = 4;
    /** Two bytes, eight of an extended length, and the mask. */
    private static final int HEADER_BYTES_MAX = 14;

    private static final VarHandle LONGS = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.BIG_ENDIAN);

    private final byte[] header = new byte[HEADER_BYTES_MAX];
    private int headerBytes;
    private int headerBytesWanted = 2;

    private Opcode opcode;
    private boolean fin;
    private int mask;
    private int payloadLeft;
    private boolean inPayload;

    private boolean started;

    /** The kind of the message that is being received in fragments, or null between messages. */
    private Opcode message;

    private final byte[] frame = new byte[Session.FRAME_BYTES];
    private int frameBytes;
    private final Incoming.Frame wholeFrame = new Incoming.Frame(frame);
    private ByteArrayOutputStream text;
    private byte[] control = BufferData.EMPTY_BYTES;
    private int controlBytes;

    private enum Opcode {
        CONTINUATION,
        TEXT,
        BINARY,
        CLOSE,
        PING,
        PONG;

        boolean isControl() {
            return compareTo(CLOSE) >= 0;
        }

        static Opcode of(int bits) throws Violation {
            return switch (bits) {
                case 0x0 -> CONTINUATION;
                case 0x1 -> TEXT;
                case 0x2 -> BINARY;
                case 0x8 -> CLOSE;
                case 0x9 -> PING;
                case 0xA -> PONG;
                default -> throw protocol("a reserved opcode");
            };
        }
    }

    /** The next message in {@code bytes}, or null when they are used up and more are needed. */
    public Incoming next(BufferData bytes) throws Violation {
        while (true) {
            if (!inPayload && !readHeader(bytes)) {
                return null;
            }
            readPayload(bytes);
            if (payloadLeft > 0) {
                return null;
            }
            inPayload = false;
            headerBytes = 0;
            headerBytesWanted = 2;
            Incoming incoming = opcode.isControl() ? control() : fin ? message() : null;
            if (incoming != null) {
                return incoming;
            }
        }
    }

    /** The start message has come: from now on a text is refused, and binary messages are not. */
    public void started() {
        started = true;
    }

    /** Whether a whole header has been read; if so all of it has been checked. */
    private boolean readHeader(BufferData bytes) throws Violation {
        while (headerBytes < headerBytesWanted) {
            if (bytes.available() == 0) {
                return false;
            }
            headerBytes += bytes.read(header, headerBytes, headerBytesWanted - headerBytes);
            if (headerBytes >= 2) {
                headerBytesWanted = headerLength();
            }
        }
        begin();
        return true;
    }

    private int headerLength() {
        int extended =
                switch (header[1] & 0x7F) {
                    case 126 -> 2;
                    case 127 -> 8;
                    default -> 0;
                };
        int masked = (header[1] & 0x80) == 0 ? 0 : MASK_BYTES;
        return 2 + extended + masked;
    }

    private void begin() throws Violation {
        if ((header[0] & 0x70) != 0) {
            throw protocol("a reserved bit");
        }
        opcode = Opcode.of(header[0] & 0x0F);
        fin = (header[0] & 0x80) != 0;
        if ((header[1] & 0x80) == 0) {
            throw protocol("a frame without a mask");
        }
        int short7 = header[1] & 0x7F;
        ByteBuffer rest = ByteBuffer.wrap(header, 2, HEADER_BYTES_MAX - 2);
        long length = short7 == 126 ? rest.getShort() & 0xFFFF : short7 == 127 ? rest.getLong() : short7;
        mask = rest.getInt();
        if (opcode.isControl()) {
            beginControl(length);
        } else {
            beginData(length);
        }
        payloadLeft = (int) length;
        inPayload = true;
    }

    private void beginControl(long length) throws Violation {
        if (!fin || length < 0 || length > CONTROL_BYTES_MAX) {
            throw protocol("a control frame that is fragmented or too long");
        }
        control = length == 0 ? BufferData.EMPTY_BYTES : new byte[(int) length];
        controlBytes = 0;
    }

    private void beginData(long length) throws Violation {
        if ((message == null) == (opcode == Opcode.CONTINUATION)) {
            throw protocol("fragments of a message out of turn");
        }
        boolean first = message == null;
        if (first) {
            message = opcode;
            frameBytes = 0;
            text = null;
        }
        int before = message == Opcode.BINARY ? frameBytes : text == null ? 0 : text.size();
        // A length that is negative as a long is one of over 2^63.
        if (length < 0 || length > MESSAGE_BYTES_MAX - before) {
            throw new Violation(CloseReason.TOO_LARGE, "a message of over 64 KiB");
        }
        if ((message == Opcode.TEXT) == started) {
            throw protocol(started ? "a text message after the start" : "audio before the start");
        }
        if (message == Opcode.BINARY && !fits(before + (int) length)) {
            throw new Violation(CloseReason.FRAME_SIZE, "a binary message that is not one frame");
        }
    }

    private boolean fits(int bytes) {
        return fin ? bytes == Session.FRAME_BYTES : bytes <= Session.FRAME_BYTES;
    }

    private void readPayload(BufferData bytes) {
        int count = Math.min(payloadLeft, bytes.available());
        if (count == 0) {
            return;
        }
        if (opcode.isControl()) {
            bytes.read(control, controlBytes, count);
            mask = unmask(control, controlBytes, count, mask);
            controlBytes += count;
        } else if (message == Opcode.BINARY) {
            bytes.read(frame, frameBytes, count);
            mask = unmask(frame, frameBytes, count, mask);
            frameBytes += count;
        } else {
            byte[] part = new byte[count];
            bytes.read(part, 0, count);
            mask = unmask(part, 0, count, mask);
            if (text == null) {
                text = new ByteArrayOutputStream(count);
            }
            text.writeBytes(part);
        }
        payloadLeft -= count;
    }

    private Incoming message() throws Violation {
        Opcode kind = message;
        message = null;
        if (kind == Opcode.BINARY) {
            return wholeFrame;
        }
        byte[] utf8 = text == null ? BufferData.EMPTY_BYTES : text.toByteArray();
        text = null;
        return new Incoming.Text(decode(utf8, 0));
    }

    private Incoming control() throws Violation {
        return switch (opcode) {
            case PING -> new Incoming.Ping(control);
            case CLOSE -> new Incoming.Close(closeCode());
            default -> null;
        };
    }

    private OptionalInt closeCode() throws Violation {
        if (control.length == 0) {
            return OptionalInt.empty();
        }
        if (control.length == 1) {
            throw protocol("half a close code");
        }
        int code = ((control[0] & 0xFF) << 8) | (control[1] & 0xFF);
        boolean legal = (code >= 1000 && code <= 1014 && code != 1004 && code != 1005 && code != 1006)
                || (code >= 3000 && code <= 4999);
        if (!legal) {
            throw protocol("a close code that may not be sent");
        }
        decode(control, 2);
        return OptionalInt.of(code);
    }

    private static String decode(byte[] utf8, int offset) throws Violation {
        try {
            return StandardCharsets.UTF_8
                    .newDecoder()
                    .decode(ByteBuffer.wrap(utf8, offset, utf8.length - offset))
                    .toString();
        } catch (CharacterCodingException _) {
            throw protocol("a text that is not UTF-8");
        }
    }

    /** Takes the mask off, eight bytes at a time; the mask for what follows. */
    static int unmask(byte[] bytes, int from, int count, int mask) {
        long wide = ((long) mask << 32) | (mask & 0xFFFF_FFFFL);
        int at = from;
        int end = from + count;
        for (; at + Long.BYTES <= end; at += Long.BYTES) {
            LONGS.set(bytes, at, (long) LONGS.get(bytes, at) ^ wide);
        }
        int turned = mask;
        for (; at < end; at++) {
            bytes[at] ^= (byte) (turned >>> 24);
            turned = Integer.rotateLeft(turned, 8);
        }
        return turned;
    }

    private static Violation protocol(String message) {
        return new Violation(CloseReason.PROTOCOL, message);
    }
}
