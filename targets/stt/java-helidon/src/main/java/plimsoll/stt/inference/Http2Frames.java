package plimsoll.stt.inference;

import io.helidon.http.http2.Http2ErrorCode;
import io.helidon.http.http2.Http2FrameType;
import java.io.ByteArrayOutputStream;
import java.net.URI;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/** The frames of HTTP/2 (RFC 9113) that a client of one kind of request sends. */
final class Http2Frames {
    static final int HEADER_BYTES = 9;

    static final int FLAG_ACK = 0x1;
    static final int FLAG_END_STREAM = 0x1;
    static final int FLAG_END_HEADERS = 0x4;
    static final int FLAG_PADDED = 0x8;
    static final int FLAG_PRIORITY = 0x20;

    // Of the static table of HPACK (RFC 7541, appendix A).
    private static final int STATIC_AUTHORITY = 1;
    private static final int STATIC_METHOD_POST = 3;
    private static final int STATIC_PATH = 4;
    private static final int STATIC_SCHEME_HTTP = 6;
    private static final int STATIC_CONTENT_LENGTH = 28;
    private static final int STATIC_CONTENT_TYPE = 31;

    private static final int INDEXED = 0x80;

    private Http2Frames() {}

    static void header(ByteBuffer out, int length, Http2FrameType type, int flags, int streamId) {
        out.put((byte) (length >>> 16)).putShort((short) length);
        out.put((byte) type.type()).put((byte) flags);
        out.putInt(streamId);
    }

    static byte[] settingsAck() {
        return frame(Http2FrameType.SETTINGS, FLAG_ACK, 0, new byte[0]);
    }

    static byte[] ping(byte[] opaque, boolean ack) {
        return frame(Http2FrameType.PING, ack ? FLAG_ACK : 0, 0, opaque);
    }

    static byte[] reset(int streamId, Http2ErrorCode code) {
        return frame(
                Http2FrameType.RST_STREAM,
                0,
                streamId,
                ByteBuffer.allocate(4).putInt(code.code()).array());
    }

    static byte[] windowUpdate(int increment) {
        return frame(
                Http2FrameType.WINDOW_UPDATE,
                0,
                0,
                ByteBuffer.allocate(4).putInt(increment).array());
    }

    static byte[] frame(Http2FrameType type, int flags, int streamId, byte[] payload) {
        ByteBuffer frame = ByteBuffer.allocate(HEADER_BYTES + payload.length);
        header(frame, payload.length, type, flags, streamId);
        return frame.put(payload).array();
    }

    /**
     * The header block of every request but its content-length. It is the same each time: it refers to the static table only
     * and asks the server to remember nothing, so it is encoded once.
     */
    static byte[] requestBlock(URI url, long cpuPasses) {
        String path = url.getRawPath() == null ? "" : url.getRawPath();
        ByteArrayOutputStream block = new ByteArrayOutputStream();
        block.write(INDEXED | STATIC_METHOD_POST);
        block.write(INDEXED | STATIC_SCHEME_HTTP);
        literal(block, STATIC_PATH, path.replaceAll("/+$", "") + "/infer");
        literal(block, STATIC_AUTHORITY, url.getRawAuthority());
        literal(block, STATIC_CONTENT_TYPE, "application/octet-stream");
        block.write(0);
        string(block, "x-cpu-passes");
        string(block, Long.toString(cpuPasses));
        return block.toByteArray();
    }

    /** HEADERS of a request with {@code length} bytes of body. */
    static void requestHeaders(ByteBuffer out, byte[] block, int streamId, int length) {
        ByteArrayOutputStream contentLength = new ByteArrayOutputStream(16);
        literal(contentLength, STATIC_CONTENT_LENGTH, Integer.toString(length));
        header(out, block.length + contentLength.size(), Http2FrameType.HEADERS, FLAG_END_HEADERS, streamId);
        out.put(block).put(contentLength.toByteArray());
    }

    /** A literal without indexing, its name from the static table (RFC 7541, section 6.2.2). */
    private static void literal(ByteArrayOutputStream block, int name, String value) {
        integer(block, 4, name);
        string(block, value);
    }

    private static void string(ByteArrayOutputStream block, String value) {
        byte[] bytes = value.getBytes(StandardCharsets.US_ASCII);
        integer(block, 7, bytes.length);
        block.writeBytes(bytes);
    }

    private static void integer(ByteArrayOutputStream block, int prefixBits, int value) {
        int prefixMax = (1 << prefixBits) - 1;
        if (value < prefixMax) {
            block.write(value);
            return;
        }
        block.write(prefixMax);
        int rest = value - prefixMax;
        for (; rest >= 0x80; rest >>>= 7) {
            block.write(0x80 | (rest & 0x7F));
        }
        block.write(rest);
    }
}
