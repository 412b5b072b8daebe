package plimsoll.http.undertow;

import io.undertow.Undertow;
import io.undertow.UndertowOptions;
import io.undertow.server.DefaultByteBufferPool;
import io.undertow.server.HttpHandler;
import io.undertow.server.protocol.http.HttpOpenListener;
import io.undertow.server.protocol.http2.Http2UpgradeHandler;
import java.io.Closeable;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.concurrent.atomic.AtomicBoolean;
import org.xnio.ChannelListener;
import org.xnio.ChannelListeners;
import org.xnio.OptionMap;
import org.xnio.Options;
import org.xnio.StreamConnection;
import org.xnio.Xnio;
import org.xnio.XnioWorker;
import org.xnio.channels.AcceptingChannel;
import plimsoll.http.Config;
import plimsoll.http.Metrics;

/**
 * The socket that accepts, with a worker of XNIO behind it. Does what {@code Undertow.builder()} does, with its values, and two things
 * that the builder cannot: it counts connections, and it stops accepting while others go on.
 */
final class Listener implements Closeable {
    private static final int TASK_THREADS_PER_IO_THREAD = 8;
    private static final int CONNECTIONS_MAX = 1_000_000;
    private static final int BACKLOG = 1000;
    private static final int BUFFER_BYTES = 16 * 1024 - 20;
    private static final int BUFFERS_PER_THREAD = 4;
    private static final int HEAD_BYTES_MAX = 16 * 1024;
    private static final int PARSE_TIMEOUT_MS = 30_000;
    private static final int IDLE_TIMEOUT_MS = 75_000;
    private static final int STREAMS_MAX = 256;

    private final AcceptingChannel<StreamConnection> socket;

    Listener(Config config, Metrics metrics, HttpHandler handler) throws IOException {
        HttpOpenListener protocol = new HttpOpenListener(
                new DefaultByteBufferPool(true, BUFFER_BYTES, -1, BUFFERS_PER_THREAD), serverOptions(config));
        protocol.setRootHandler(new Http2UpgradeHandler(handler));
        socket = worker(config)
                .createStreamConnectionServer(
                        new InetSocketAddress("0.0.0.0", config.port()),
                        ChannelListeners.<StreamConnection>openListenerAdapter(
                                connection -> open(connection, protocol, metrics)),
                        socketOptions(config));
        socket.resumeAccepts();
    }

    private static void open(StreamConnection connection, HttpOpenListener protocol, Metrics metrics) {
        metrics.opened();
        protocol.handleEvent(connection);
        // Undertow has set its own listener by now, and may have closed the connection already.
        ChannelListener<? super StreamConnection> next = connection.getCloseListener();
        AtomicBoolean counted = new AtomicBoolean();
        connection.setCloseListener(closed -> {
            countOnce(counted, metrics);
            ChannelListeners.invokeChannelListener(closed, next);
        });
        if (!connection.isOpen()) {
            countOnce(counted, metrics);
        }
    }

    private static void countOnce(AtomicBoolean counted, Metrics metrics) {
        if (counted.compareAndSet(false, true)) {
            metrics.closed();
        }
    }

    private static XnioWorker worker(Config config) throws IOException {
        int taskThreads = config.workers() * TASK_THREADS_PER_IO_THREAD;
        return Xnio.getInstance(Undertow.class.getClassLoader())
                .createWorker(OptionMap.builder()
                        .set(Options.WORKER_IO_THREADS, config.workers())
                        .set(Options.WORKER_TASK_CORE_THREADS, taskThreads)
                        .set(Options.WORKER_TASK_MAX_THREADS, taskThreads)
                        .set(Options.CONNECTION_HIGH_WATER, CONNECTIONS_MAX)
                        .set(Options.CONNECTION_LOW_WATER, CONNECTIONS_MAX)
                        .set(Options.TCP_NODELAY, true)
                        .set(Options.CORK, true)
                        .getMap());
    }

    private static OptionMap socketOptions(Config config) {
        return OptionMap.builder()
                .set(Options.WORKER_IO_THREADS, config.workers())
                .set(Options.TCP_NODELAY, true)
                .set(Options.REUSE_ADDRESSES, true)
                .set(Options.BALANCING_TOKENS, 1)
                .set(Options.BALANCING_CONNECTIONS, 2)
                .set(Options.BACKLOG, BACKLOG)
                .getMap();
    }

    private static OptionMap serverOptions(Config config) {
        return OptionMap.builder()
                .set(UndertowOptions.BUFFER_PIPELINED_DATA, true)
                .set(UndertowOptions.ENABLE_HTTP2, true)
                .set(UndertowOptions.HTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, STREAMS_MAX)
                .set(UndertowOptions.MAX_ENTITY_SIZE, (long) config.maxBodyBytes())
                .set(UndertowOptions.MAX_HEADER_SIZE, HEAD_BYTES_MAX)
                .set(UndertowOptions.REQUIRE_HOST_HTTP11, true)
                .set(UndertowOptions.REQUEST_PARSE_TIMEOUT, PARSE_TIMEOUT_MS)
                .set(UndertowOptions.NO_REQUEST_TIMEOUT, IDLE_TIMEOUT_MS)
                .getMap();
    }

    /** Stops accepting. Connections that are open go on. */
    @Override
    public void close() throws IOException {
        socket.close();
    }
}
