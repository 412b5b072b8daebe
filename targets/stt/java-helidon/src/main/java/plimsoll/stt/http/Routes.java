package plimsoll.stt.http;

import io.helidon.http.HeaderNames;
import io.helidon.http.Status;
import io.helidon.webserver.WebServer;
import io.helidon.webserver.http.HttpRouting;
import io.helidon.webserver.http1.Http1Config;
import io.helidon.webserver.http1.Http1ConnectionSelector;
import java.time.Duration;
import plimsoll.stt.Gateway;

/** The HTTP surface: health, metrics, and the path of the sessions for those who do not upgrade. All else is 404. */
public final class Routes {
    static final String SESSIONS = "/ws/stt";

    /** Connections that may wait to be accepted, for many sessions start at once. The kernel caps it at somaxconn. */
    private static final int LISTEN_BACKLOG = 4096;

    /**
     * What the kernel may hold for a client that does not read. Some hundred partials; left alone it would grow to
     * megabytes for each such client, out of sight of the outbox.
     */
    private static final int SEND_BUFFER_BYTES = 32 * 1024;

    /**
     * What the kernel may hold of what has not been read. Helidon's own is 32 KiB, and since the kernel counts what a segment
     * takes and not what is in it, that is seven frames: less than come between two reads at a pace of 200 ms.
     */
    private static final int RECEIVE_BUFFER_BYTES = 128 * 1024;

    private Routes() {}

    /** A server for the gateway, not yet started. */
    public static WebServer server(Gateway gateway) {
        HttpRouting.Builder routes = HttpRouting.builder()
                .get("/health", (_, response) -> response.status(
                                gateway.isDraining() ? Status.SERVICE_UNAVAILABLE_503 : Status.OK_200)
                        .send())
                .get("/metrics", (_, response) -> response.header(
                                HeaderNames.CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")
                        .send(gateway.metrics()
                                .render(
                                        gateway.sessions().inUse(),
                                        gateway.jobs().inUse())))
                .get(SESSIONS, (_, response) -> response.status(Status.UPGRADE_REQUIRED_426)
                        .header(HeaderNames.UPGRADE, "websocket")
                        .header(HeaderNames.create("Sec-WebSocket-Version"), "13")
                        .send());
        return WebServer.builder()
                .port(gateway.config().port())
                .backlog(LISTEN_BACKLOG)
                .connectionOptions(options -> options.tcpNoDelay(true)
                        .socketSendBufferSize(SEND_BUFFER_BYTES)
                        .socketReceiveBufferSize(RECEIVE_BUFFER_BYTES))
                .addConnectionSelector(Http1ConnectionSelector.builder()
                        .config(Http1Config.create())
                        .addUpgrader(new SttUpgrader(gateway, "websocket"))
                        .addUpgrader(new SttUpgrader(gateway, "WebSocket"))
                        .build())
                // Ours is the end of the process: first the sessions, then the sockets.
                .shutdownHook(false)
                .shutdownGracePeriod(Duration.ZERO)
                .routing(routes)
                .build();
    }
}
