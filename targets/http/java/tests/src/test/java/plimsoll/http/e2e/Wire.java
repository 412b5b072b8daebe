package plimsoll.http.e2e;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import java.io.BufferedInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;

/** A connection on which every byte of a request is the test's own. */
final class Wire implements AutoCloseable {
    private static final int TIMEOUT_MS = 10_000;

    private final Socket socket = new Socket();
    private final InputStream in;

    Wire(int port) throws IOException {
        socket.setTcpNoDelay(true);
        socket.setSoTimeout(TIMEOUT_MS);
        socket.connect(new InetSocketAddress(InetAddress.getLoopbackAddress(), port), TIMEOUT_MS);
        in = new BufferedInputStream(socket.getInputStream());
    }

    /** An answer. Names of fields are in lower case, and each byte of the body is a character. */
    record Answer(int status, Map<String, String> fields, String text) {
        String field(String name) {
            return fields.getOrDefault(name, "");
        }
    }

    void send(String text) throws IOException {
        send(text.getBytes(ISO_8859_1));
    }

    void send(byte[] bytes) throws IOException {
        socket.getOutputStream().write(bytes);
        socket.getOutputStream().flush();
    }

    Answer get(String path) throws IOException {
        send("GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n");
        return receive();
    }

    Answer head(String path) throws IOException {
        send("HEAD " + path + " HTTP/1.1\r\nHost: x\r\n\r\n");
        return receive(false);
    }

    Answer post(String path, byte[] body) throws IOException {
        send("POST " + path + " HTTP/1.1\r\nHost: x\r\nContent-Length: " + body.length + "\r\n\r\n");
        send(body);
        return receive();
    }

    Answer receive() throws IOException {
        return receive(true);
    }

    /** The next answer that is not an interim one. */
    Answer receive(boolean withBody) throws IOException {
        Answer answer;
        do {
            answer = receiveAny(withBody);
        } while (answer.status < 200);
        return answer;
    }

    /** The next answer, which may be an interim one. */
    Answer receiveAny(boolean withBody) throws IOException {
        String statusLine = line();
        if (!statusLine.matches("HTTP/1\\.[01] \\d{3}( .*)?")) {
            throw new IOException("no status line: " + statusLine);
        }
        int status = Integer.parseInt(statusLine, 9, 12, 10);
        Map<String, String> fields = new TreeMap<>();
        for (String line = line(); !line.isEmpty(); line = line()) {
            int colon = line.indexOf(':');
            fields.put(
                    line.substring(0, colon).toLowerCase(Locale.ROOT),
                    line.substring(colon + 1).strip());
        }
        if (status < 200 || !withBody) {
            return new Answer(status, fields, "");
        }
        if (!fields.containsKey("content-length")) {
            throw new IOException("no Content-Length in " + statusLine + " " + fields);
        }
        int length = Integer.parseInt(fields.get("content-length"));
        byte[] body = in.readNBytes(length);
        if (body.length < length) {
            throw new EOFException("closed within a body");
        }
        return new Answer(status, fields, new String(body, ISO_8859_1));
    }

    /** The status codes of all answers until the server closes; empty if it says nothing. */
    List<Integer> statusesUntilClose(int waitMs) throws IOException {
        List<Integer> statuses = new ArrayList<>();
        socket.setSoTimeout(waitMs);
        try {
            while (true) {
                statuses.add(receiveAny(true).status);
            }
        } catch (IOException _) {
            // Closed, reset, or nothing more within the time.
            return statuses;
        } finally {
            socket.setSoTimeout(TIMEOUT_MS);
        }
    }

    /** Whether the server closes within this time and sends nothing before. */
    boolean isClosedWithin(int waitMs) throws IOException {
        socket.setSoTimeout(waitMs);
        try {
            return in.read() < 0;
        } catch (java.net.SocketTimeoutException _) {
            return false;
        } catch (IOException _) {
            // A reset.
            return true;
        } finally {
            socket.setSoTimeout(TIMEOUT_MS);
        }
    }

    private String line() throws IOException {
        StringBuilder line = new StringBuilder();
        for (int c = in.read(); c != '\n'; c = in.read()) {
            if (c < 0) {
                throw new EOFException("closed within a head: " + line);
            }
            line.append((char) c);
        }
        if (line.length() > 0 && line.charAt(line.length() - 1) == '\r') {
            line.setLength(line.length() - 1);
        }
        return line.toString();
    }

    @Override
    public void close() throws IOException {
        socket.close();
    }
}
