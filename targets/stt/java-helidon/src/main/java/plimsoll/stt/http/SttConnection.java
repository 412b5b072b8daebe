package plimsoll.stt.http;

import io.helidon.common.buffers.BufferData;
import io.helidon.common.buffers.DataReader;
import io.helidon.common.concurrency.limits.Limit;
import io.helidon.common.socket.HelidonSocket;
import io.helidon.webserver.ConnectionContext;
import io.helidon.webserver.spi.ServerConnection;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.OptionalInt;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import plimsoll.stt.Gateway;
import plimsoll.stt.Uptime;
import plimsoll.stt.message.GatewayMessage;
import plimsoll.stt.session.CloseReason;
import plimsoll.stt.session.Session;
import plimsoll.stt.session.Violation;
import plimsoll.stt.websocket.FrameDecoder;
import plimsoll.stt.websocket.Frames;
import plimsoll.stt.websocket.Incoming;
import plimsoll.stt.websocket.Outbox;

/**
 * The socket of one session, and its virtual threads. Helidon's own reads; the {@link Pacemaker} does all that goes by the
 * clock; a writer lives while there is something to write. Each blocks as it likes and holds up no other. The session itself
 * is a plain value that they share, and its monitor is the lock around it.
 */
public final class SttConnection implements ServerConnection {
    /** How long a client may take to answer our close before the socket is closed all the same. */
    static final long LINGER_NANOS = TimeUnit.SECONDS.toNanos(1);

    /** Some six frames: one is what comes at a time, more is what has piled up on a busy machine. */
    private static final int READ_BUFFER_BYTES = 4 * 1024;

    /** For readers at a pace: what comes in 250 ms at the longest, and half as much again. */
    private static final int PACED_READ_BUFFER_BYTES = 12 * 1024;

    private final Gateway gateway;
    private final HelidonSocket socket;
    private final DataReader early;
    private final BufferData upgradeResponse;
    private final Session session;
    private final FrameDecoder decoder = new FrameDecoder();
    private final Outbox outbox = new Outbox();
    private final Pacemaker pacemaker;
    private volatile Thread reader;
    private volatile boolean readerIsDone;
    // The reader's own.
    private boolean clientClosed;
    private boolean decoderFailed;

    SttConnection(Gateway gateway, ConnectionContext context, BufferData upgradeResponse) {
        this.gateway = gateway;
        this.socket = context.serverSocket();
        this.early = context.dataReader();
        this.upgradeResponse = upgradeResponse;
        long jitterMax = gateway.config().flushPhaseJitterNanos();
        long jitterNanos = jitterMax == 0 ? 0 : ThreadLocalRandom.current().nextLong(jitterMax);
        this.session = new Session(gateway.config().session(), gateway.audio(), jitterNanos, Uptime.nanos());
        this.pacemaker = new Pacemaker(gateway, this, session, outbox);
    }

    @Override
    public void handle(Limit limit) {
        reader = Thread.currentThread();
        try {
            // Before anybody else knows this socket: nothing may be written ahead of it.
            socket.write(upgradeResponse);
            gateway.opened(this);
            pacemaker.start();
            read();
            awaitLastWrite();
        } catch (UncheckedIOException _) {
            // The client or the network ended it, or our own patience did.
        } finally {
            readerIsDone = true;
            end();
            gateway.closed(this);
        }
        // Helidon closes the socket.
    }

    /** Reads until the client has closed or is gone. After a close of ours what comes is read as well, and forgotten. */
    @SuppressWarnings("ThreadPriorityCheck") // Virtual threads are not preempted: to yield is the way to share.
    private void read() {
        if (early.available() > 0) {
            take(early.readBuffer(early.available()));
        }
        long paceNanos = gateway.config().readPaceNanos();
        int bufferBytes = paceNanos > 0 ? PACED_READ_BUFFER_BYTES : READ_BUFFER_BYTES;
        BufferData buffer = BufferData.create(bufferBytes);
        while (!clientClosed) {
            buffer.clear();
            int count = socket.read(buffer);
            if (count < 0) {
                return;
            }
            take(buffer);
            if (count < bufferBytes) {
                pacemaker.pace(paceNanos);
            } else {
                // There is more, so the next read will not park. A flood must not keep the carrier from all others.
                Thread.yield();
            }
        }
    }

    private void take(BufferData bytes) {
        if (decoderFailed) {
            return;
        }
        // What is read at once arrived at one time, as far as the gateway can know.
        long now = Uptime.nanos();
        try {
            synchronized (session) {
                for (Incoming incoming = decoder.next(bytes); incoming != null; incoming = decoder.next(bytes)) {
                    take(incoming, now);
                }
                pacemaker.wakeIfDue(session.dueAtNanos(), now);
            }
        } catch (Violation violation) {
            decoderFailed = true;
            close(violation.reason());
        }
    }

    private void take(Incoming incoming, long now) throws Violation {
        switch (incoming) {
            case Incoming.Frame(byte[] frame) -> session.onFrame(frame, now);
            case Incoming.Text(String text) -> {
                session.onText(text, now);
                decoder.started();
                pacemaker.wake();
            }
            case Incoming.Ping(byte[] payload) -> {
                if (outbox.offerPong(Frames.pong(payload))) {
                    startWriter();
                }
            }
            case Incoming.Close(OptionalInt code) -> {
                clientClosed = true;
                close(Frames.close(code), true);
            }
        }
    }

    /** Puts a message into the outbox. */
    void send(GatewayMessage message) {
        if (outbox.offer(Frames.text(message.toJson()))) {
            startWriter();
        }
    }

    /** Ends the session with a close of ours, behind the messages that are not sent yet. */
    public void close(CloseReason reason) {
        close(Frames.close(OptionalInt.of(reason.code())), false);
    }

    private void close(byte[] frame, boolean dropMessages) {
        if (outbox.close(frame, dropMessages)) {
            startWriter();
        }
        end();
    }

    /** The session is over, whatever the socket does; its place is free. Does something the first time only. */
    private void end() {
        synchronized (session) {
            if (session.hasEnded()) {
                return;
            }
            gateway.metrics().fold(session.tally());
            session.end();
        }
        gateway.sessions().release();
        pacemaker.wake();
    }

    /** The gateway shuts down: what is in flight may still be answered until then. */
    public void drain(long untilNanos) {
        synchronized (session) {
            session.drain(untilNanos);
        }
        pacemaker.wake();
    }

    /** A thread for as long as there is something to write, so that an idle session has none. */
    private void startWriter() {
        Thread.ofVirtual().name("session-write").start(this::write);
    }

    private void write() {
        try {
            for (byte[] frame = outbox.next(); frame != null; frame = outbox.next()) {
                socket.write(BufferData.create(frame));
            }
        } catch (UncheckedIOException _) {
            abort();
        }
        LockSupport.unpark(reader);
    }

    /** The client's close is answered before the socket goes. */
    private void awaitLastWrite() {
        long untilNanos = Uptime.nanos() + LINGER_NANOS;
        while (outbox.isClosing() && !outbox.isDone() && Uptime.nanos() < untilNanos) {
            LockSupport.parkNanos(this, untilNanos - Uptime.nanos());
        }
    }

    boolean readerIsDone() {
        return readerIsDone;
    }

    Thread reader() {
        return reader;
    }

    /** Closes the socket under whoever reads or writes. */
    void abort() {
        try {
            socket.close();
        } catch (UncheckedIOException _) {
            // It is of no use any more, closed or not.
        }
    }

    /** Never idle, for Helidon: audio comes all the time, and a client that sends none is welcome to listen. */
    @Override
    public Duration idleTime() {
        return Duration.ZERO;
    }

    @Override
    public void close(boolean interrupt) {
        close(CloseReason.GOING_AWAY);
    }
}
