package plimsoll.http.bare;

import java.io.IOException;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.util.concurrent.atomic.AtomicInteger;
import plimsoll.http.Answer;

/**
 * One client's connection: all that does not depend on which threads read, answer and write. They take turns: at most
 * one uses {@link #read} and {@link #next}, and at most one {@link #answer} and {@link #write}.
 */
final class Connection {
    /** What a connection waits for, which is how long it may wait. */
    enum Phase {
        IDLE(120),
        HEAD(Timeouts.REQUEST_SECONDS),
        BODY(Timeouts.REQUEST_SECONDS),
        ANSWER(60),
        /** The last answer is written; the client's end is not. */
        FAREWELL(2);

        private static final Phase[] ALL = values();
        final int seconds;

        Phase(int seconds) {
            this.seconds = seconds;
        }
    }

    /** Tests shorten them. */
    private static final class Timeouts {
        static final int REQUEST_SECONDS = Integer.getInteger("plimsoll.request_timeout_s", 45);
    }

    final SocketChannel channel;
    private final Server server;
    private final Input input = new Input();
    private final Parser parser;
    private final Output output = new Output();
    /** The phase and the second in which it began, in one number: the watch reads them from its own thread. */
    private final AtomicInteger since = new AtomicInteger();

    private Phase phase = Phase.IDLE;
    private boolean last;
    private boolean refused;

    Connection(Server server, SocketChannel channel) throws IOException {
        this.server = server;
        this.channel = channel;
        this.parser = new Parser(input, server.mostBodyBytes());
        channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
        enter(Phase.IDLE);
    }

    /** Reads what has come; returns its length, or -1 if nothing will come any more. There must be room. */
    int read() throws IOException {
        int count = channel.read(input.room());
        if (count > 0) {
            input.filled(count);
        }
        return count;
    }

    boolean hasRoom() {
        return !input.isFull();
    }

    /** Whether there are bytes that have not been parsed. */
    boolean hasUnparsed() {
        return !input.isEmpty();
    }

    /** What is to be answered next, or null if that needs more bytes. */
    Item next() {
        Item item = parser.next();
        if (item != null) {
            enter(Phase.ANSWER);
            return item;
        }
        Phase now =
                switch (parser.place()) {
                    case BETWEEN -> Phase.IDLE;
                    case IN_HEAD -> Phase.HEAD;
                    case IN_BODY -> Phase.BODY;
                };
        // A head has its time in all, a body each time that something of it comes.
        if (now != Phase.HEAD || phase != Phase.HEAD) {
            enter(now);
        }
        return null;
    }

    /** Makes the answer. It then waits for {@link #write}. */
    void answer(Item item) {
        switch (item) {
            case Item.Continue() -> output.putContinue();
            case Item.Refusal(int status) -> {
                refused = true;
                last = true;
                output.put(Answer.refusal(status), server.date(), true, true, false);
            }
            case Item.Request request -> {
                last = request.close() || server.isDraining();
                Answer answer = server.routes().answer(request.method(), request.path(), request.body());
                boolean withBody = !request.method().equals("HEAD");
                output.put(answer, server.date(), withBody, last, request.sayKeepAlive());
            }
        }
    }

    /** Writes what the client takes of the answer; returns whether that was all. */
    boolean write() throws IOException {
        boolean all = output.writeTo(channel);
        if (!all) {
            enter(Phase.ANSWER);
        }
        return all;
    }

    /** Whether the answer just written was the last one. */
    boolean isLast() {
        return last;
    }

    /** Whether what came was refused. The client may be sending still. */
    boolean isRefused() {
        return refused;
    }

    /**
     * Ends the server's side. Returns whether the client's has to be read to its end first: a socket that is closed
     * with unread bytes is reset, and the reset can overtake the answer.
     */
    boolean sayFarewell() throws IOException {
        if (!refused && input.isEmpty()) {
            return false;
        }
        enter(Phase.FAREWELL);
        channel.shutdownOutput();
        return true;
    }

    /** Reads and forgets; returns -1 at the end of what the client sends. */
    int discard() throws IOException {
        input.consume(input.end() - input.start());
        ByteBuffer room = input.room();
        return channel.read(room);
    }

    /** Ends it because of a fault in this program. Other connections go on. */
    void fail(RuntimeException fault) {
        close();
        fault.printStackTrace();
    }

    /** Closes it, from any thread and as often as one likes. */
    void close() {
        if (server.forget(this)) {
            try {
                channel.close();
            } catch (IOException e) {
                // It is gone in any case, and nobody is left to be told.
            }
        }
    }

    boolean isIdle() {
        return Phase.ALL[since.getAcquire() & 7] == Phase.IDLE;
    }

    boolean isOverdue(int second) {
        int seen = since.getAcquire();
        return second - (seen >> 3) > Phase.ALL[seen & 7].seconds;
    }

    private void enter(Phase next) {
        phase = next;
        since.setRelease(server.second() << 3 | next.ordinal());
    }
}
