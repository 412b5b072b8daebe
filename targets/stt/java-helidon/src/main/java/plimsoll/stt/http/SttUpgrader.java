package plimsoll.stt.http;

import io.helidon.common.buffers.BufferData;
import io.helidon.http.DirectHandler.EventType;
import io.helidon.http.HeaderName;
import io.helidon.http.HeaderNames;
import io.helidon.http.HeaderValues;
import io.helidon.http.Headers;
import io.helidon.http.HttpPrologue;
import io.helidon.http.Method;
import io.helidon.http.RequestException;
import io.helidon.http.Status;
import io.helidon.http.WritableHeaders;
import io.helidon.webserver.ConnectionContext;
import io.helidon.webserver.http1.spi.Http1Upgrader;
import io.helidon.webserver.spi.ServerConnection;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Base64;
import java.util.Locale;
import plimsoll.stt.Gateway;

/**
 * Turns an HTTP/1.1 connection into a session, or refuses while it is still HTTP. What it leaves alone (another path, a
 * handshake that is none) goes on to the routes.
 */
final class SttUpgrader implements Http1Upgrader {
    private static final HeaderName KEY = HeaderNames.create("Sec-WebSocket-Key");
    private static final HeaderName VERSION = HeaderNames.create("Sec-WebSocket-Version");
    private static final String SUPPORTED_VERSION = "13";
    private static final int KEY_BYTES = 16;
    private static final String ACCEPT_SUFFIX = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    private static final String BEARER = "Bearer ";

    private final Gateway gateway;
    private final String protocol;

    /** Helidon compares the protocol's name by case, and RFC 9110 does not: hence one upgrader for each spelling in use. */
    SttUpgrader(Gateway gateway, String protocol) {
        this.gateway = gateway;
        this.protocol = protocol;
    }

    @Override
    public String supportedProtocol() {
        return protocol;
    }

    @Override
    public ServerConnection upgrade(ConnectionContext context, HttpPrologue prologue, WritableHeaders<?> headers) {
        if (!prologue.method().equals(Method.GET)
                || !prologue.uriPath().path().equals(Routes.SESSIONS)
                || !isHandshake(headers)) {
            return null;
        }
        if (!gateway.config().authToken().isEmpty() && !bears(headers)) {
            throw refusal(Status.UNAUTHORIZED_401).build();
        }
        if (gateway.isDraining() || !gateway.sessions().tryAcquire()) {
            gateway.metrics().sessionRejected();
            throw refusal(Status.SERVICE_UNAVAILABLE_503)
                    .header(HeaderValues.create(HeaderNames.RETRY_AFTER, "1"))
                    .build();
        }
        gateway.metrics().sessionOpened();
        return new SttConnection(
                gateway, context, switchingProtocols(headers.get(KEY).get()));
    }

    private static RequestException.Builder refusal(Status status) {
        return RequestException.builder()
                .type(EventType.OTHER)
                .status(status)
                .setKeepAlive(false)
                .safeMessage(true)
                .message(status.reasonPhrase());
    }

    private static boolean isHandshake(Headers headers) {
        return headers.contains(HeaderNames.CONNECTION)
                && headers.get(HeaderNames.CONNECTION).allValues().stream()
                        .anyMatch(value -> value.toLowerCase(Locale.ROOT).contains("upgrade"))
                && headers.contains(VERSION)
                && headers.get(VERSION).get().equals(SUPPORTED_VERSION)
                && headers.contains(KEY)
                && isKey(headers.get(KEY).get());
    }

    private static boolean isKey(String key) {
        try {
            return Base64.getDecoder().decode(key).length == KEY_BYTES;
        } catch (IllegalArgumentException _) {
            return false;
        }
    }

    /** Whether the request carries the token, in a time that does not tell how much of it is right. */
    private boolean bears(Headers headers) {
        if (!headers.contains(HeaderNames.AUTHORIZATION)) {
            return false;
        }
        String value = headers.get(HeaderNames.AUTHORIZATION).get();
        // The scheme is no secret, and its case does not matter (RFC 9110, section 11.1).
        return value.regionMatches(true, 0, BEARER, 0, BEARER.length())
                && MessageDigest.isEqual(
                        value.substring(BEARER.length()).getBytes(StandardCharsets.UTF_8),
                        gateway.config().authToken().getBytes(StandardCharsets.UTF_8));
    }

    private static BufferData switchingProtocols(String key) {
        try {
            byte[] digest = MessageDigest.getInstance("SHA-1")
                    .digest((key + ACCEPT_SUFFIX).getBytes(StandardCharsets.US_ASCII));
            String response = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                    + "Sec-WebSocket-Accept: " + Base64.getEncoder().encodeToString(digest) + "\r\n\r\n";
            return BufferData.create(response.getBytes(StandardCharsets.US_ASCII));
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("every JDK has SHA-1", e);
        }
    }
}
