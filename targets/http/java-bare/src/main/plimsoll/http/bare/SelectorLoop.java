package plimsoll.http.bare;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.channels.CancelledKeyException;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.function.Function;

/** One thread that waits for all its connections, accepts, reads and parses. Who answers is {@link Answering}. */
final class SelectorLoop {
    /** Where the answers are made. */
    interface Answering {
        /** Answers an item. Returns true if the answer is written and the next item can be parsed at once. */
        boolean answer(Link link, Item item) throws IOException;

        /** Bytes have come while an answer is being made; or, with {@link Link#ended}, there will be none. */
        boolean isBusy(Link link);

        /** The socket takes bytes again. */
        void onWritable(Link link) throws IOException;
    }

    /** A connection as the loop sees it. */
    static final class Link {
        final Connection connection;
        final SelectionKey key;
        boolean ended;
        boolean farewell;
        /** Of {@link Answering}. */
        Object state;

        Link(Connection connection, SelectionKey key) {
            this.connection = connection;
            this.key = key;
        }

        void want(int operation) {
            key.interestOpsOr(operation);
        }

        void dontWant(int operation) {
            key.interestOpsAnd(~operation);
        }
    }

    /** What another thread wants done by the loop. */
    interface Task {
        void run() throws IOException;
    }

    private record Order(Link link, Task task) {}

    private static final long LONGEST_WAIT_MS = 1000;

    private final Server server;
    private final ServerSocketChannel listener;
    private final Answering answering;
    private final Selector selector = Selector.open();
    private final Queue<Order> orders = new ConcurrentLinkedQueue<>();

    SelectorLoop(Server server, ServerSocketChannel listener, Function<SelectorLoop, Answering> answering)
            throws IOException {
        this.server = server;
        this.listener = listener;
        this.answering = answering.apply(this);
        server.whenListenersClose(selector::wakeup);
        listener.configureBlocking(false);
        listener.register(selector, SelectionKey.OP_ACCEPT);
    }

    void start() {
        Thread.ofPlatform().name("loop").start(this::run);
    }

    /** Has the loop do something for a connection. For other threads. */
    void order(Link link, Task task) {
        orders.add(new Order(link, task));
        selector.wakeup();
    }

    private void run() {
        try {
            while (true) {
                // With a limit, because a channel that another thread closes is released only here.
                selector.select(this::onReady, LONGEST_WAIT_MS);
                for (Order order = orders.poll(); order != null; order = orders.poll()) {
                    guard(order.link, order.task);
                }
            }
        } catch (IOException e) {
            throw new UncheckedIOException("the selector failed", e);
        }
    }

    private void onReady(SelectionKey key) {
        if (key.attachment() instanceof Link link) {
            guard(link, () -> onReady(link));
        } else {
            accept();
        }
    }

    private void accept() {
        try {
            for (SocketChannel channel = listener.accept(); channel != null; channel = listener.accept()) {
                channel.configureBlocking(false);
                Connection connection = server.admit(channel);
                SelectionKey key = channel.register(selector, SelectionKey.OP_READ);
                key.attach(new Link(connection, key));
            }
        } catch (IOException e) {
            // No descriptor is free, the client has gone already, or the listener is closed: the next turn tries again.
        }
    }

    /** A connection that fails ends, and no other with it. */
    private static void guard(Link link, Task task) {
        try {
            task.run();
        } catch (IOException | CancelledKeyException e) {
            link.connection.close();
        } catch (RuntimeException e) {
            link.connection.fail(e);
        }
    }

    private void onReady(Link link) throws IOException {
        if (link.key.isWritable()) {
            answering.onWritable(link);
        }
        if (link.key.isValid() && link.key.isReadable()) {
            onReadable(link);
        }
    }

    private void onReadable(Link link) throws IOException {
        Connection connection = link.connection;
        if (link.farewell) {
            if (connection.discard() < 0) {
                connection.close();
            }
            return;
        }
        link.ended = connection.read() < 0;
        if (link.ended || !connection.hasRoom()) {
            link.dontWant(SelectionKey.OP_READ);
        }
        if (!answering.isBusy(link)) {
            proceed(link);
        }
    }

    /** Parses and answers until more bytes are needed, or an answer is on its way. */
    void proceed(Link link) throws IOException {
        Connection connection = link.connection;
        while (true) {
            Item item = connection.next();
            if (item == null) {
                if (link.ended) {
                    connection.close();
                } else {
                    wantToRead(link);
                }
                return;
            }
            if (!answering.answer(link, item)) {
                return;
            }
            if (connection.isLast()) {
                end(link);
                return;
            }
        }
    }

    private static void wantToRead(Link link) {
        if ((link.key.interestOps() & SelectionKey.OP_READ) == 0) {
            link.want(SelectionKey.OP_READ);
        }
    }

    /** After the last answer. */
    void end(Link link) throws IOException {
        if (!link.ended && link.connection.sayFarewell()) {
            link.farewell = true;
            wantToRead(link);
        } else {
            link.connection.close();
        }
    }
}
