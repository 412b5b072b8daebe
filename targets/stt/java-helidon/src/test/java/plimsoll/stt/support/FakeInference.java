package plimsoll.stt.support;

import io.helidon.http.http2.Http2Util;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.URI;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.IntFunction;

/** An inference server that does as it is told: HTTP/2 with prior knowledge, as little of it as a test needs. */
public final class FakeInference implements AutoCloseable {
    private static final int DATA = 0;
    private static final int HEADERS = 1;
    private static final int RST_STREAM = 3;
    private static final int SETTINGS = 4;
    private static final int PING = 6;
    private static final int GO_AWAY = 7;
    private static final int WINDOW_UPDATE = 8;

    private static final int PASSES = 4;

    /** What to do about a request. */
    public sealed interface Reaction {
        /** An answer with this status; without a body it is that of the reference computation. */
        record Status(int code, String body) implements Reaction {}

        record Reset() implements Reaction {}

        record Never() implements Reaction {}

        /** GOAWAY that leaves this request out, and the end of the connection. */
        record GoAway() implements Reaction {}

        record HangUp() implements Reaction {}
    }

    public static final Reaction ANSWER = new Reaction.Status(200, null);

    private final ServerSocket server = new ServerSocket(0, 64, InetAddress.getLoopbackAddress());
    private final List<Socket> sockets = new CopyOnWriteArrayList<>();
    private final IntFunction<Reaction> reactions;
    private final int windowBytes;
    private final List<Integer> resets = new CopyOnWriteArrayList<>();
    private int requests;

    /** {@code reactions} gives that to the n-th request, from 1 on; streams get {@code windowBytes} of credit at a time. */
    public FakeInference(int windowBytes, IntFunction<Reaction> reactions) throws IOException {
        this.windowBytes = windowBytes;
        this.reactions = reactions;
        Thread.ofVirtual().start(this::accept);
    }

    public URI url() {
        return URI.create("http://127.0.0.1:" + server.getLocalPort());
    }

    public int connections() {
        return sockets.size();
    }

    /** Streams that the client has reset. */
    public List<Integer> resets() {
        return resets;
    }

    private void accept() {
        try {
            while (true) {
                Socket socket = server.accept();
                socket.setTcpNoDelay(true);
                sockets.add(socket);
                Thread.ofVirtual().start(() -> serve(socket));
            }
        } catch (IOException _) {
            // Closed.
        }
    }

    private void serve(Socket socket) {
        Map<Integer, ByteArrayOutputStream> bodies = new HashMap<>();
        try (socket) {
            DataInputStream in = new DataInputStream(socket.getInputStream());
            in.skipNBytes(Http2Util.PREFACE_LENGTH);
            // INITIAL_WINDOW_SIZE; and as much for the connection as it can have.
            send(
                    socket,
                    SETTINGS,
                    0,
                    0,
                    ByteBuffer.allocate(6).putShort((short) 4).putInt(windowBytes));
            send(socket, WINDOW_UPDATE, 0, 0, ByteBuffer.allocate(4).putInt(Integer.MAX_VALUE - 65_535));
            while (true) {
                int lengthAndType = in.readInt();
                int flags = in.readByte();
                int stream = in.readInt();
                byte[] payload = in.readNBytes(lengthAndType >>> 8);
                switch (lengthAndType & 0xFF) {
                    case HEADERS -> bodies.put(stream, new ByteArrayOutputStream());
                    case DATA -> {
                        ByteArrayOutputStream body = bodies.get(stream);
                        body.writeBytes(payload);
                        send(
                                socket,
                                WINDOW_UPDATE,
                                0,
                                stream,
                                ByteBuffer.allocate(4).putInt(payload.length));
                        if ((flags & 1) != 0 && !react(socket, stream, body.toByteArray())) {
                            return;
                        }
                    }
                    case PING -> {
                        if ((flags & 1) == 0) {
                            send(socket, PING, 1, 0, ByteBuffer.wrap(payload).position(payload.length));
                        }
                    }
                    case RST_STREAM -> resets.add(stream);
                    default -> {}
                }
            }
        } catch (IOException _) {
            // The client has gone, or the test is over.
        }
    }

    private synchronized boolean react(Socket socket, int stream, byte[] body) throws IOException {
        switch (reactions.apply(++requests)) {
            case Reaction.Status(int code, String text) -> {
                // Literal without indexing, :status from the static table.
                byte[] digits = Integer.toString(code).getBytes(StandardCharsets.US_ASCII);
                send(
                        socket,
                        HEADERS,
                        4,
                        stream,
                        ByteBuffer.allocate(5).put((byte) 8).put((byte) 3).put(digits));
                byte[] answer = (text == null ? Synthetic.answer(body, PASSES) : text).getBytes(StandardCharsets.UTF_8);
                send(socket, DATA, 1, stream, ByteBuffer.allocate(answer.length).put(answer));
            }
            case Reaction.Reset() ->
                send(socket, RST_STREAM, 0, stream, ByteBuffer.allocate(4).putInt(2));
            case Reaction.Never() -> {}
            case Reaction.GoAway() -> {
                send(
                        socket,
                        GO_AWAY,
                        0,
                        0,
                        ByteBuffer.allocate(8).putInt(stream - 2).putInt(0));
                return false;
            }
            case Reaction.HangUp() -> {
                return false;
            }
        }
        return true;
    }

    private static synchronized void send(Socket socket, int type, int flags, int stream, ByteBuffer payload)
            throws IOException {
        ByteBuffer whole = payload.flip();
        ByteBuffer frame = ByteBuffer.allocate(9 + whole.remaining());
        frame.putInt((whole.remaining() << 8) | type).put((byte) flags).putInt(stream);
        frame.put(whole);
        socket.getOutputStream().write(frame.array());
    }

    @Override
    public void close() {
        try {
            server.close();
            for (Socket socket : sockets) {
                socket.close();
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
