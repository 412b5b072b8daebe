package plimsoll.stt.http;

import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import plimsoll.stt.Gateway;
import plimsoll.stt.Uptime;
import plimsoll.stt.message.Answer;
import plimsoll.stt.message.GatewayMessage;
import plimsoll.stt.session.Batch;
import plimsoll.stt.session.CloseReason;
import plimsoll.stt.session.Session;
import plimsoll.stt.session.Tick;
import plimsoll.stt.websocket.Outbox;

/**
 * All of a session that goes by the clock, as one virtual thread that sleeps, flushes, waits for the answer, and sleeps
 * again. A tick cannot overtake a request, nor can a second request be made before the first is back: it is the next line of
 * the same thread.
 */
final class Pacemaker {
    /** How long a tick waits for a reader at a pace to have read what has arrived. */
    private static final long READER_PATIENCE_NANOS = TimeUnit.MILLISECONDS.toNanos(5);

    private final Gateway gateway;
    private final SttConnection connection;
    private final Session session;
    private final Outbox outbox;
    private final Thread thread;
    /** Whether the reader is sleeping between two reads. */
    private volatile boolean readerSleeps;
    /** Whether a tick waits for the reader to have read. */
    private volatile boolean awaitsReader;

    Pacemaker(Gateway gateway, SttConnection connection, Session session, Outbox outbox) {
        this.gateway = gateway;
        this.connection = connection;
        this.session = session;
        this.outbox = outbox;
        this.thread = Thread.ofVirtual().name("session-clock").unstarted(this::run);
    }

    void start() {
        thread.start();
    }

    /** Something has changed that the clock does not tell. */
    void wake() {
        LockSupport.unpark(thread);
    }

    /**
     * Called by the reader. The timers of virtual threads are run by a thread outside the scheduler, and what comes from
     * outside waits for as long as carriers find work inside: on a saturated carrier, for ever. A reader is inside.
     */
    void wakeIfDue(long dueNanos, long now) {
        if (dueNanos <= now) {
            wake();
        }
    }

    private void run() {
        while (true) {
            boolean drained;
            long dueNanos;
            synchronized (session) {
                drained = session.isDrained();
                dueNanos = session.dueAtNanos();
            }
            if (dueNanos == Session.NEVER_NANOS) {
                break;
            }
            if (drained) {
                connection.close(CloseReason.GOING_AWAY);
                break;
            }
            long now = Uptime.nanos();
            if (dueNanos > now) {
                LockSupport.parkNanos(this, dueNanos - now);
            } else {
                onDue();
            }
        }
        linger();
    }

    private void onDue() {
        Optional<CloseReason> overdue;
        synchronized (session) {
            overdue = session.overdue(Uptime.nanos());
        }
        if (overdue.isPresent()) {
            connection.close(overdue.get());
            return;
        }
        awaitPacedReader();
        Tick tick;
        synchronized (session) {
            Tick.Leave leave = new Tick.Leave(outbox.unsentMessages(), gateway.jobs()::tryAcquire);
            tick = session.tick(Uptime.nanos(), leave);
            gateway.metrics().fold(session.tally());
        }
        switch (tick) {
            case Tick.Nothing() -> {}
            case Tick.Deferred deferred -> deferred.errors().forEach(connection::send);
            case Tick.Reported reported -> reported.errors().forEach(connection::send);
            case Tick.Flushed flushed -> {
                flushed.errors().forEach(connection::send);
                gateway.metrics().flushed(flushed.flight());
                infer(flushed.batch(), flushed.flight().sentAtNanos());
            }
        }
    }

    private void infer(Batch batch, long sentAtNanos) {
        Answer answer;
        try {
            answer = gateway.inference().infer(batch, this::giveUpAtNanos);
        } finally {
            gateway.jobs().release();
        }
        long now = Uptime.nanos();
        gateway.metrics().answered(now - sentAtNanos);
        GatewayMessage message;
        synchronized (session) {
            if (session.hasEnded()) {
                return;
            }
            message = session.onAnswer(answer, now);
            gateway.metrics().fold(session.tally());
        }
        connection.send(message);
    }

    private long giveUpAtNanos() {
        synchronized (session) {
            return session.giveUpAtNanos();
        }
    }

    /** The session is over and its close on the way. A client that does not end the connection now has it ended. */
    private void linger() {
        long untilNanos = Uptime.nanos() + SttConnection.LINGER_NANOS;
        while (!connection.readerIsDone()) {
            long leftNanos = untilNanos - Uptime.nanos();
            if (leftNanos <= 0) {
                connection.abort();
                return;
            }
            LockSupport.parkNanos(this, leftNanos);
        }
    }

    /** Called by the reader after a read: lets frames pile up, so that the next read takes many. */
    void pace(long paceNanos) {
        if (paceNanos == 0) {
            return;
        }
        long untilNanos = Uptime.nanos() + paceNanos;
        readerSleeps = true;
        if (awaitsReader) {
            wake();
        }
        while (readerSleeps && Uptime.nanos() < untilNanos) {
            LockSupport.parkNanos(this, untilNanos - Uptime.nanos());
        }
        readerSleeps = false;
    }

    /** A flush takes what has arrived, so a reader that sleeps is sent to read first. */
    private void awaitPacedReader() {
        if (!readerSleeps) {
            return;
        }
        awaitsReader = true;
        readerSleeps = false;
        LockSupport.unpark(connection.reader());
        // It sleeps again when it has read. It may find nothing to read and be waiting for that.
        long untilNanos = Uptime.nanos() + READER_PATIENCE_NANOS;
        while (!readerSleeps && Uptime.nanos() < untilNanos) {
            LockSupport.parkNanos(this, untilNanos - Uptime.nanos());
        }
        awaitsReader = false;
    }
}
