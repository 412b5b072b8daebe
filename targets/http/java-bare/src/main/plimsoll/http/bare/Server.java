package plimsoll.http.bare;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import plimsoll.http.Config;
import plimsoll.http.Counts;
import plimsoll.http.Routes;

/** What all modes share: listeners, the set of connections, the clock and the end. */
final class Server {
    private static final int BACKLOG = 65_535;
    private static final long TICK_MS = 1000;
    private static final long DRAIN_TICK_MS = 10;

    private final Config config;
    private final Clock clock = new Clock();
    private final Counts counts = new Counts(true);
    private final Routes routes = new Routes(counts);
    private final List<ServerSocketChannel> listeners = new ArrayList<>();
    private final List<Runnable> wakeups = new CopyOnWriteArrayList<>();
    private final Set<Connection> connections = ConcurrentHashMap.newKeySet();
    private volatile boolean draining;

    Server(Config config) {
        this.config = config;
    }

    /** Binds a listener for each worker. The kernel spreads connections over them. */
    void bind() throws IOException {
        for (int worker = 0; worker < config.workers(); worker++) {
            ServerSocketChannel listener = ServerSocketChannel.open();
            // A lone worker does not ask for it: else a second server on the same port would take half of its clients.
            if (config.workers() > 1) {
                listener.setOption(StandardSocketOptions.SO_REUSEPORT, true);
            }
            listener.bind(new InetSocketAddress("0.0.0.0", config.port()), BACKLOG);
            listeners.add(listener);
        }
    }

    void start(Mode mode) throws IOException {
        for (ServerSocketChannel listener : listeners) {
            mode.start(this, listener);
        }
        Thread.ofPlatform().name("watch").start(this::watch);
    }

    Connection admit(SocketChannel channel) throws IOException {
        Connection connection = new Connection(this, channel);
        counts.connectionOpened();
        connections.add(connection);
        return connection;
    }

    /** Returns whether the connection was still known. */
    boolean forget(Connection connection) {
        boolean known = connections.remove(connection);
        if (known) {
            counts.connectionClosed();
        }
        return known;
    }

    Routes routes() {
        return routes;
    }

    long mostBodyBytes() {
        return config.maxBodyBytes();
    }

    byte[] date() {
        return clock.date();
    }

    int second() {
        return clock.second();
    }

    boolean isDraining() {
        return draining;
    }

    /** Advances the clock, and closes connections that have taken too long. */
    private void watch() {
        try {
            while (true) {
                Thread.sleep(TICK_MS);
                clock.advance();
                for (Connection connection : connections) {
                    if (connection.isOverdue(clock.second())) {
                        connection.close();
                    }
                }
            }
        } catch (InterruptedException e) {
            throw new IllegalStateException("nobody interrupts the watch", e);
        }
    }

    /** Has this run when the listeners have been closed: a selector goes on accepting until it has turned once more. */
    void whenListenersClose(Runnable wakeup) {
        wakeups.add(wakeup);
    }

    /** Accepts nothing new, closes what is idle, and waits for the rest. */
    void drain() throws InterruptedException {
        long endNs = System.nanoTime() + config.drainWaitMs() * 1_000_000L;
        draining = true;
        for (ServerSocketChannel listener : listeners) {
            try {
                listener.close();
            } catch (IOException e) {
                System.err.println("java-bare: cannot close the listener: " + e);
            }
        }
        wakeups.forEach(Runnable::run);
        while (!connections.isEmpty() && System.nanoTime() < endNs) {
            connections.stream().filter(Connection::isIdle).forEach(Connection::close);
            Thread.sleep(DRAIN_TICK_MS);
        }
    }
}
