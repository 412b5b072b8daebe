package plimsoll.http.bare;

import java.io.IOException;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.concurrent.locks.LockSupport;

/** A thread for each connection, virtual or of the platform, and one to accept. All of them block. */
final class ThreadPerConnection {
    private static final long PAUSE_NS = 10_000_000;

    private final Server server;
    private final ServerSocketChannel listener;
    private final Thread.Builder threads;

    ThreadPerConnection(Server server, ServerSocketChannel listener, Thread.Builder threads) {
        this.server = server;
        this.listener = listener;
        this.threads = threads;
    }

    void start() {
        threads.start(this::accept);
    }

    private void accept() {
        while (listener.isOpen()) {
            try {
                SocketChannel channel = listener.accept();
                Connection connection = server.admit(channel);
                begin(connection);
            } catch (ClosedChannelException e) {
                return;
            } catch (IOException e) {
                // No descriptor is free, or the client has gone already. The first passes only with time.
                LockSupport.parkNanos(PAUSE_NS);
            }
        }
    }

    private void begin(Connection connection) {
        try {
            threads.start(() -> serve(connection));
        } catch (OutOfMemoryError e) {
            // There is no thread to be had for it. That ends this connection and no other.
            connection.close();
        }
    }

    private void serve(Connection connection) {
        try {
            while (!connection.isLast()) {
                Item item = connection.next();
                if (item == null) {
                    if (connection.read() < 0) {
                        return;
                    }
                } else {
                    connection.answer(item);
                    while (!connection.write()) {
                        // Written in part: the rest blocks again.
                    }
                }
            }
            if (connection.sayFarewell()) {
                while (connection.discard() >= 0) {
                    // The client is still sending.
                }
            }
        } catch (IOException e) {
            // The client has gone, or the watch has closed the connection.
        } catch (RuntimeException e) {
            connection.fail(e);
        } finally {
            connection.close();
        }
    }
}
