package plimsoll.http.bare;

import java.io.IOException;
import java.nio.channels.SelectionKey;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Each item is handed to a new virtual thread, which answers and writes. A connection has one such thread at most,
 * because answers keep the order of requests. What comes meanwhile is read, and parsed when the thread has ended.
 */
final class AnswerInThread implements SelectorLoop.Answering {
    /** No thread: the loop parses what comes. */
    private static final int FREE = 0;

    private static final int BUSY = 1;
    /** A thread, and the loop has something to do when it ends. */
    private static final int AWAITED = 2;

    private static final class Turn {
        final AtomicInteger state = new AtomicInteger(FREE);
        final Semaphore writable = new Semaphore(0);
    }

    private final SelectorLoop loop;

    AnswerInThread(SelectorLoop loop) {
        this.loop = loop;
    }

    @Override
    public boolean answer(SelectorLoop.Link link, Item item) {
        Turn turn = turnOf(link);
        turn.state.set(link.connection.hasUnparsed() || link.ended ? AWAITED : BUSY);
        Thread.startVirtualThread(() -> run(link, turn, item));
        return false;
    }

    @Override
    public boolean isBusy(SelectorLoop.Link link) {
        Turn turn = turnOf(link);
        return turn.state.get() == AWAITED || turn.state.compareAndSet(BUSY, AWAITED);
    }

    @Override
    public void onWritable(SelectorLoop.Link link) {
        link.dontWant(SelectionKey.OP_WRITE);
        turnOf(link).writable.release();
    }

    private static Turn turnOf(SelectorLoop.Link link) {
        if (link.state == null) {
            link.state = new Turn();
        }
        return (Turn) link.state;
    }

    private void run(SelectorLoop.Link link, Turn turn, Item item) {
        Connection connection = link.connection;
        try {
            connection.answer(item);
            while (!connection.write()) {
                awaitWritable(link, turn);
            }
        } catch (IOException e) {
            connection.close();
            return;
        } catch (RuntimeException e) {
            connection.fail(e);
            return;
        }
        if (connection.isLast()) {
            if (turn.state.get() == BUSY && !connection.isRefused()) {
                // Nothing came that is unread, so there is no farewell that only the loop could read.
                connection.close();
            } else {
                loop.order(link, () -> loop.end(link));
            }
        } else if (!turn.state.compareAndSet(BUSY, FREE)) {
            loop.order(link, () -> {
                turn.state.set(FREE);
                loop.proceed(link);
            });
        }
    }

    /** Only the loop may touch the key. It does not learn of a connection that is closed meanwhile; writing does. */
    private void awaitWritable(SelectorLoop.Link link, Turn turn) throws IOException {
        loop.order(link, () -> link.want(SelectionKey.OP_WRITE));
        try {
            boolean isWritable = turn.writable.tryAcquire(1, TimeUnit.SECONDS);
            if (isWritable) {
                turn.writable.drainPermits();
            }
        } catch (InterruptedException e) {
            throw new IOException("nobody interrupts these threads", e);
        }
    }
}
