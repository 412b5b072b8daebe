package plimsoll.http.test;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import java.io.BufferedInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;

/** A client that sends just the bytes that it is given, and reads answers strictly. */
public final class Wire implements AutoCloseable {
    private static final int TIMEOUT_MS = 10_000;

    /** One answer. Names of fields are in lower case. */
    public record Reply(int status, Map<String, String> fields, byte[] body) {
        public String text() {
            return new String(body, ISO_8859_1);
        }

        public String field(String name) {
            return fields.get(name);
        }
    }

    private final Socket socket = new Socket();
    private final InputStream in;

    public Wire(int port) throws IOException {
        this(port, 0);
    }

    /** With {@code receiveBytes} above 0 the kernel holds about as much of what is not read. */
    public Wire(int port, int receiveBytes) throws IOException {
        if (receiveBytes > 0) {
            socket.setReceiveBufferSize(receiveBytes);
        }
        socket.setTcpNoDelay(true);
        socket.connect(new InetSocketAddress(InetAddress.getLoopbackAddress(), port), TIMEOUT_MS);
        socket.setSoTimeout(TIMEOUT_MS);
        in = new BufferedInputStream(socket.getInputStream(), 64 << 10);
    }

    public Wire send(String text) throws IOException {
        return send(text.getBytes(ISO_8859_1));
    }

    public Wire send(byte[] bytes) throws IOException {
        socket.getOutputStream().write(bytes);
        return this;
    }

    public void timeoutMs(int milliseconds) throws IOException {
        socket.setSoTimeout(milliseconds);
    }

    public void endOutput() throws IOException {
        socket.shutdownOutput();
    }

    /** Sends a GET and reads its answer. */
    public Reply get(String path) throws IOException {
        return send("GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n").reply();
    }

    public Reply reply() throws IOException {
        return reply(true);
    }

    /** Reads an answer. The answer to a HEAD has no body, whatever its length says. */
    public Reply reply(boolean withBody) throws IOException {
        String[] first = line().split(" ", 3);
        if (first.length < 2 || !first[0].equals("HTTP/1.1")) {
            throw new IOException("not an answer: " + String.join(" ", first));
        }
        Map<String, String> fields = new TreeMap<>();
        for (String line = line(); !line.isEmpty(); line = line()) {
            int colon = line.indexOf(':');
            String name = line.substring(0, colon).toLowerCase(Locale.ROOT);
            if (fields.put(name, line.substring(colon + 1).strip()) != null) {
                throw new IOException("twice in one answer: " + name);
            }
        }
        int status = Integer.parseInt(first[1]);
        if (status == 100) {
            return new Reply(status, fields, new byte[0]);
        }
        String length = fields.get("content-length");
        if (length == null) {
            throw new IOException("an answer without Content-Length: " + status);
        }
        byte[] body = withBody ? in.readNBytes(Integer.parseInt(length)) : new byte[0];
        if (withBody && body.length != Integer.parseInt(length)) {
            throw new EOFException("a body of " + body.length + " bytes, said to be " + length);
        }
        return new Reply(status, fields, body);
    }

    /** Whether the other end closes, or resets, before anything else comes. */
    public boolean isClosed() throws IOException {
        try {
            return in.read() < 0;
        } catch (java.net.SocketTimeoutException e) {
            return false;
        } catch (java.net.SocketException e) {
            return true;
        }
    }

    private String line() throws IOException {
        StringBuilder line = new StringBuilder();
        while (true) {
            int c = in.read();
            if (c < 0) {
                throw new EOFException("closed in a line or before it: '" + line + "'");
            }
            if (c == '\n') {
                if (line.isEmpty() || line.charAt(line.length() - 1) != '\r') {
                    throw new IOException("a line that does not end with CR and LF: " + line);
                }
                line.setLength(line.length() - 1);
                return line.toString();
            }
            line.append((char) c);
        }
    }

    @Override
    public void close() throws IOException {
        socket.close();
    }
}
