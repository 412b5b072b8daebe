package plimsoll.stt;

import io.helidon.http.DirectHandler;
import io.helidon.http.HeaderNames;
import io.helidon.http.HeaderValues;
import io.helidon.http.Headers;
import io.helidon.http.RequestException;
import io.helidon.http.Status;
import io.helidon.webserver.WebServer;
import io.helidon.webserver.http.HttpRouting;
import io.helidon.webserver.http.ServerRequest;
import io.helidon.webserver.http.ServerResponse;
import io.helidon.webserver.websocket.WsConfig;
import io.helidon.webserver.websocket.WsRouting;
import io.helidon.websocket.WsUpgradeException;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.time.Duration;
import java.util.Base64;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;

/** The HTTP surface, the admission and the drain. */
final class Gateway {
    private static final String SESSIONS_PATH = "/ws/stt";
    private static final int MESSAGE_BYTES_MAX = 64 * 1024;
    private static final int KEY_BYTES = 16;
    private static final long DRAIN_POLL_MS = 5;

    private final Shared shared;

    /** Open sockets, a little longer than their sessions: a closing handshake follows. */
    private final Set<SttListener> listeners = ConcurrentHashMap.newKeySet();

    private volatile boolean draining;

    Gateway(Shared shared) {
        this.shared = shared;
    }

    /** A server for this gateway, not yet started. */
    WebServer server() {
        return WebServer.builder()
                .port(shared.config().port())
                .connectionOptions(options -> options.tcpNoDelay(true))
                .addProtocol(
                        WsConfig.builder().maxFrameLength(MESSAGE_BYTES_MAX).build())
                // The process has its own end: the sessions first.
                .shutdownHook(false)
                .addRouting(HttpRouting.builder()
                        .get("/health", this::health)
                        .get("/metrics", this::scrape)
                        .get(SESSIONS_PATH, Gateway::upgradeRequired))
                .addRouting(WsRouting.builder().endpoint(SESSIONS_PATH, () -> new SttListener(this, shared)))
                .build();
    }

    private void health(ServerRequest request, ServerResponse response) {
        response.status(draining ? Status.SERVICE_UNAVAILABLE_503 : Status.OK_200)
                .send();
    }

    private void scrape(ServerRequest request, ServerResponse response) {
        response.header(HeaderNames.CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")
                .send(shared.metrics()
                        .render(shared.sessions().inUse(), shared.jobs().inUse()));
    }

    private static void upgradeRequired(ServerRequest request, ServerResponse response) {
        response.status(Status.UPGRADE_REQUIRED_426)
                .header(HeaderNames.UPGRADE, "websocket")
                .send();
    }

    /** Takes a place for a session, or refuses the upgrade while the connection still speaks HTTP. */
    void admit(Headers headers) throws WsUpgradeException {
        if (!hasKey(headers)) {
            throw new WsUpgradeException("no valid Sec-WebSocket-Key");
        }
        if (!hasToken(headers)) {
            throw refusal(Status.UNAUTHORIZED_401).build();
        }
        if (draining) {
            throw refusal(Status.SERVICE_UNAVAILABLE_503).build();
        }
        if (!shared.sessions().tryAcquire()) {
            shared.metrics().sessionsRejected.increment();
            throw refusal(Status.SERVICE_UNAVAILABLE_503)
                    .header(HeaderValues.create(HeaderNames.RETRY_AFTER, "1"))
                    .build();
        }
        shared.metrics().sessions.increment();
    }

    /** Helidon looks at the key only after the listener has agreed. A place would be taken by then. */
    private static boolean hasKey(Headers headers) {
        String key = headers.value(HeaderNames.create("Sec-WebSocket-Key")).orElse("");
        try {
            return Base64.getDecoder().decode(key).length == KEY_BYTES;
        } catch (IllegalArgumentException _) {
            return false;
        }
    }

    /** Compares in a time that does not tell how much of the token is right. */
    private boolean hasToken(Headers headers) {
        String token = shared.config().authToken();
        String given = headers.value(HeaderNames.AUTHORIZATION).orElse("");
        String wanted = "Bearer " + token;
        return token.isEmpty()
                || MessageDigest.isEqual(
                        given.getBytes(StandardCharsets.UTF_8), wanted.getBytes(StandardCharsets.UTF_8));
    }

    private static RequestException.Builder refusal(Status status) {
        return RequestException.builder()
                .type(DirectHandler.EventType.OTHER)
                .status(status)
                .setKeepAlive(false)
                .safeMessage(true)
                .message(status.reasonPhrase());
    }

    void opened(SttListener listener) {
        listeners.add(listener);
        // A drain that began meanwhile has not seen this one.
        if (draining) {
            listener.drain();
        }
    }

    void closed(SttListener listener) {
        listeners.remove(listener);
    }

    /**
     * Refuses new sessions, lets the open ones answer what is in flight, and returns when the last socket is closed or the
     * time for it is nearly over.
     */
    void drain() throws InterruptedException {
        draining = true;
        Duration all = shared.config().drainTimeout();
        long begunNanos = System.nanoTime();
        listeners.forEach(SttListener::drain);
        // A fifth of the time is left for the closes of those whose answer has not come.
        awaitClosed(begunNanos, all.multipliedBy(4).dividedBy(5));
        listeners.forEach(SttListener::closeForDrain);
        awaitClosed(begunNanos, all.multipliedBy(19).dividedBy(20));
    }

    private void awaitClosed(long sinceNanos, Duration longest) throws InterruptedException {
        while (!listeners.isEmpty() && System.nanoTime() - sinceNanos < longest.toNanos()) {
            TimeUnit.MILLISECONDS.sleep(DRAIN_POLL_MS);
        }
    }
}
