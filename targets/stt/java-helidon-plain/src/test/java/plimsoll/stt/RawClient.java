package plimsoll.stt;

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;

/** A WebSocket client that can declare a length and send nothing. Its mask is 0, so that a payload is plain. */
final class RawClient implements AutoCloseable {
    static final int TEXT = 1;
    static final int BINARY = 2;
    static final int CLOSE = 8;
    static final int PING = 9;
    static final int PONG = 10;

    /** What the server said: a control frame by its opcode, a close with its code. */
    record Answer(int opcode, int closeCode) {}

    private final Socket socket;
    private final DataInputStream in;
    private final DataOutputStream out;

    RawClient(int port, String token) throws IOException {
        socket = new Socket(InetAddress.getLoopbackAddress(), port);
        socket.setSoTimeout(5000);
        in = new DataInputStream(socket.getInputStream());
        out = new DataOutputStream(socket.getOutputStream());
        out.write(("GET /ws/stt HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                        + "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
                        + "Authorization: Bearer " + token + "\r\n\r\n")
                .getBytes(StandardCharsets.US_ASCII));
        StringBuilder head = new StringBuilder();
        while (head.indexOf("\r\n\r\n") < 0) {
            head.append((char) in.readUnsignedByte());
        }
        if (!head.toString().startsWith("HTTP/1.1 101")) {
            throw new IOException(head.toString());
        }
    }

    void header(int opcode, long length) throws IOException {
        out.write(0x80 | opcode);
        if (length < 126) {
            out.write(0x80 | (int) length);
        } else if (length < 1 << 16) {
            out.write(0x80 | 126);
            out.writeShort((int) length);
        } else {
            out.write(0x80 | 127);
            out.writeLong(length);
        }
        out.writeInt(0);
    }

    void send(int opcode, byte[] payload) throws IOException {
        header(opcode, payload.length);
        out.write(payload);
    }

    Answer answer() throws IOException {
        int opcode = in.readUnsignedByte() & 0xF;
        byte[] payload = in.readNBytes(in.readUnsignedByte());
        return new Answer(opcode, opcode == CLOSE ? ((payload[0] & 0xFF) << 8) | (payload[1] & 0xFF) : 0);
    }

    @Override
    public void close() throws IOException {
        socket.close();
    }
}
