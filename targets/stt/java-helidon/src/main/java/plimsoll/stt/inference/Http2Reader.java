package plimsoll.stt.inference;

import io.helidon.common.buffers.BufferData;
import io.helidon.http.http2.Http2Flag;
import io.helidon.http.http2.Http2FrameData;
import io.helidon.http.http2.Http2FrameHeader;
import io.helidon.http.http2.Http2FrameType;
import io.helidon.http.http2.Http2FrameTypes;
import io.helidon.http.http2.Http2Headers;
import io.helidon.http.http2.Http2HuffmanDecoder;
import io.helidon.http.http2.Http2Setting;
import io.helidon.http.http2.Http2Settings;
import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.net.ProtocolException;
import java.nio.ByteBuffer;
import java.nio.channels.ReadableByteChannel;
import java.util.Arrays;

/**
 * Reads the frames of one connection and tells what they say. Header blocks are decoded here, in the order in which they
 * come, since each may change the table that the next one is read with.
 */
final class Http2Reader {
    /** The largest frame that a server may send to who has not asked for larger ones, with room for many small ones. */
    private static final int READ_BUFFER_BYTES = 64 * 1024;

    private static final int FRAME_BYTES_MAX = 16 * 1024;

    private final ReadableByteChannel channel;
    private final Http2Connection connection;
    private final Http2Headers.DynamicTable table =
            Http2Headers.DynamicTable.create(Http2Setting.HEADER_TABLE_SIZE.defaultValue());

    /** The header block that is being received in pieces, and whose it is. */
    private final ByteArrayOutputStream block = new ByteArrayOutputStream();

    private int blockStreamId;
    private boolean blockEndsStream;

    Http2Reader(ReadableByteChannel channel, Http2Connection connection) {
        this.channel = channel;
        this.connection = connection;
    }

    /** Reads until the connection ends, which is always told by an exception. */
    void run() throws IOException {
        ByteBuffer in = ByteBuffer.allocateDirect(READ_BUFFER_BYTES);
        while (true) {
            if (channel.read(in) < 0) {
                throw new EOFException("closed by the server");
            }
            connection.onRead();
            in.flip();
            while (hasFrame(in)) {
                frame(in);
            }
            in.compact();
        }
    }

    private static boolean hasFrame(ByteBuffer in) throws ProtocolException {
        if (in.remaining() < Http2Frames.HEADER_BYTES) {
            return false;
        }
        int length = in.getInt(in.position()) >>> 8;
        if (length > FRAME_BYTES_MAX) {
            throw new ProtocolException("a frame of " + length + " bytes");
        }
        return in.remaining() >= Http2Frames.HEADER_BYTES + length;
    }

    private void frame(ByteBuffer in) throws IOException {
        int lengthAndType = in.getInt();
        int flags = in.get();
        int streamId = in.getInt() & 0x7FFF_FFFF;
        byte[] payload = new byte[lengthAndType >>> 8];
        in.get(payload);
        Http2FrameType type = Http2FrameType.byId(lengthAndType & 0xFF);
        type.checkLength(payload.length);
        switch (type) {
            case DATA -> data(streamId, flags, payload);
            case HEADERS -> {
                int offset = (flags & Http2Frames.FLAG_PADDED) != 0 ? 1 : 0;
                int padding = offset == 1 ? payload[0] & 0xFF : 0;
                offset += (flags & Http2Frames.FLAG_PRIORITY) != 0 ? 5 : 0;
                blockStreamId = streamId;
                blockEndsStream = (flags & Http2Frames.FLAG_END_STREAM) != 0;
                block.reset();
                headers(flags, payload, offset, payload.length - offset - padding);
            }
            case CONTINUATION -> headers(flags, payload, 0, payload.length);
            case RST_STREAM ->
                connection.onReset(streamId, ByteBuffer.wrap(payload).getInt());
            case SETTINGS -> {
                if ((flags & Http2Frames.FLAG_ACK) == 0) {
                    connection.onSettings(Http2Settings.create(BufferData.create(payload)));
                }
            }
            case PING -> connection.onPing(payload, (flags & Http2Frames.FLAG_ACK) != 0);
            case GO_AWAY -> connection.onGoAway(ByteBuffer.wrap(payload).getInt() & 0x7FFF_FFFF);
            case WINDOW_UPDATE ->
                connection.onWindowUpdate(streamId, ByteBuffer.wrap(payload).getInt() & 0x7FFF_FFFF);
            case PUSH_PROMISE -> throw new ProtocolException("a push that was refused in the settings");
            case PRIORITY, UNKNOWN -> {}
        }
    }

    private void data(int streamId, int flags, byte[] payload) throws ProtocolException {
        int offset = 0;
        int length = payload.length;
        if ((flags & Http2Frames.FLAG_PADDED) != 0) {
            offset = 1;
            length -= 1 + (payload[0] & 0xFF);
            if (length < 0) {
                throw new ProtocolException("more padding than frame");
            }
        }
        connection.onData(streamId, payload, offset, length, payload.length);
        if ((flags & Http2Frames.FLAG_END_STREAM) != 0) {
            connection.onEndOfStream(streamId);
        }
    }

    private void headers(int flags, byte[] payload, int offset, int length) throws ProtocolException {
        if (length < 0 || block.size() + length > FRAME_BYTES_MAX) {
            throw new ProtocolException("a header block of a bad length");
        }
        block.writeBytes(Arrays.copyOfRange(payload, offset, offset + length));
        if ((flags & Http2Frames.FLAG_END_HEADERS) == 0) {
            return;
        }
        byte[] bytes = block.toByteArray();
        Http2FrameHeader header = Http2FrameHeader.create(
                bytes.length,
                Http2FrameTypes.HEADERS,
                Http2Flag.HeaderFlags.create(Http2Flag.END_OF_HEADERS),
                blockStreamId);
        // No stream is asked for: only a priority, which was cut off above, would be told to it.
        Http2Headers headers = Http2Headers.create(
                null, table, Http2HuffmanDecoder.create(), new Http2FrameData(header, BufferData.create(bytes)));
        if (headers.status() != null) {
            connection.onStatus(blockStreamId, headers.status().code());
        }
        if (blockEndsStream) {
            connection.onEndOfStream(blockStreamId);
        }
    }
}
