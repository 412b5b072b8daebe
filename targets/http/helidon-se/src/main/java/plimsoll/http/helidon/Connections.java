package plimsoll.http.helidon;

import io.helidon.common.buffers.BufferData;
import io.helidon.common.concurrency.limits.Limit;
import io.helidon.common.task.InterruptableTask;
import io.helidon.webserver.ConnectionContext;
import io.helidon.webserver.http1.Http1Config;
import io.helidon.webserver.http1.Http1ConnectionSelector;
import io.helidon.webserver.http2.Http2Config;
import io.helidon.webserver.http2.Http2Connection;
import io.helidon.webserver.http2.Http2ConnectionSelector;
import io.helidon.webserver.spi.ServerConnection;
import io.helidon.webserver.spi.ServerConnectionSelector;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import plimsoll.http.Metrics;

/** The connections that are open. Wraps Helidon's two protocols, because Helidon itself does not count connections. */
final class Connections {
    private final Metrics metrics;

    private final InFlight streams;

    Connections(Metrics metrics, InFlight streams) {
        this.metrics = metrics;
        this.streams = streams;
    }

    List<ServerConnectionSelector> selectors() {
        return List.of(
                new CountingSelector(Http2ConnectionSelector.builder()
                        .http2Config(Http2Config.create())
                        .build()),
                new CountingSelector(Http1ConnectionSelector.builder()
                        .config(Http1Config.create())
                        .build()));
    }

    private final class CountingSelector implements ServerConnectionSelector {
        private final ServerConnectionSelector protocol;

        CountingSelector(ServerConnectionSelector protocol) {
            this.protocol = protocol;
        }

        @Override
        public int bytesToIdentifyConnection() {
            return protocol.bytesToIdentifyConnection();
        }

        @Override
        public Support supports(BufferData firstBytes) {
            return protocol.supports(firstBytes);
        }

        @Override
        public Set<String> supportedApplicationProtocols() {
            return protocol.supportedApplicationProtocols();
        }

        @Override
        public ServerConnection connection(ConnectionContext context) {
            return new CountedConnection(protocol.connection(context));
        }
    }

    private final class CountedConnection implements ServerConnection, InterruptableTask<Void> {
        private final ServerConnection connection;

        CountedConnection(ServerConnection connection) {
            this.connection = connection;
        }

        @Override
        public void handle(Limit limit) throws InterruptedException {
            metrics.opened();
            try {
                connection.handle(limit);
            } finally {
                metrics.closed();
            }
        }

        @Override
        public Duration idleTime() {
            return connection.idleTime();
        }

        /**
         * Ends it at once if it waits for a request, else when it has answered the one it has. Helidon 4.2.3 wants to interrupt all connections
         * as the first step of its stop, before it waits for the grace period; and it ends a connection of HTTP/2 in spite of open streams.
         */
        @Override
        public void close(boolean interrupt) {
            if (connection instanceof Http2Connection) {
                Thread.startVirtualThread(() -> {
                    streams.awaitNone();
                    connection.close(false);
                });
            } else {
                connection.close(false);
            }
        }

        @Override
        public boolean canInterrupt() {
            return connection instanceof InterruptableTask<?> task && task.canInterrupt();
        }
    }
}
