package plimsoll.stt;

import io.helidon.common.buffers.BufferData;
import io.helidon.http.Headers;
import io.helidon.http.HttpPrologue;
import io.helidon.websocket.WsCloseCodes;
import io.helidon.websocket.WsListener;
import io.helidon.websocket.WsSession;
import io.helidon.websocket.WsUpgradeException;
import java.io.ByteArrayOutputStream;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * One client: its WebSocket tied to its {@link Session}. Helidon's virtual thread of the connection reads and calls this
 * listener. Further ones write what is in the outbox, run the schedule, make a request each, and watch for the end.
 */
final class SttListener implements WsListener {
    private static final int CONTROL_BYTES_MAX = 125;
    private static final int START_CHARS_MAX = 64 * 1024;

    /** How long a client may take to answer our close before the socket is closed all the same. */
    private static final Duration LINGER = Duration.ofSeconds(1);

    private static final Duration FOREVER = Duration.ofNanos(Long.MAX_VALUE);

    private final Gateway gateway;
    private final Shared shared;
    private final Config config;

    /** One thread, so that messages leave in their order. What comes after the end is dropped. */
    private final ExecutorService outbox = new ThreadPoolExecutor(
            1,
            1,
            0,
            TimeUnit.SECONDS,
            new LinkedBlockingQueue<>(),
            Thread.ofVirtual().name("session-write").factory(),
            new ThreadPoolExecutor.DiscardPolicy());

    /** Messages in the outbox or on their way from it to the kernel. */
    private final AtomicInteger unsent = new AtomicInteger();

    private final AtomicBoolean ended = new AtomicBoolean();
    private volatile Thread connection;
    private volatile WsSession webSocket;
    private volatile Session session;
    // The reader's own: fragments of a message that is not complete.
    private final StringBuilder startText = new StringBuilder();
    private final ByteArrayOutputStream framePart = new ByteArrayOutputStream();

    SttListener(Gateway gateway, Shared shared) {
        this.gateway = gateway;
        this.shared = shared;
        this.config = shared.config();
    }

    /** Runs on the thread of the connection, like all methods of the listener. */
    @Override
    public Optional<Headers> onHttpUpgrade(HttpPrologue prologue, Headers headers) throws WsUpgradeException {
        gateway.admit(headers);
        connection = Thread.currentThread();
        Thread.ofVirtual().name("session-watch").start(this::watch);
        return Optional.empty();
    }

    @Override
    public void onOpen(WsSession opened) {
        webSocket = opened;
        gateway.opened(this);
    }

    @Override
    public void onMessage(WsSession from, String text, boolean last) {
        if (ended.get()) {
            return;
        }
        if (session != null) {
            close(WsCloseCodes.PROTOCOL_ERROR, "unexpected text");
            return;
        }
        startText.append(text);
        if (startText.length() > START_CHARS_MAX) {
            close(WsCloseCodes.TOO_BIG, "the message is too long");
        } else if (last && Json.isStart(startText.toString())) {
            start();
        } else if (last) {
            close(WsCloseCodes.PROTOCOL_ERROR, "expected start");
        }
    }

    @Override
    public void onMessage(WsSession from, BufferData data, boolean last) {
        if (ended.get()) {
            return;
        }
        if (session == null) {
            close(WsCloseCodes.PROTOCOL_ERROR, "expected start");
            return;
        }
        byte[] pcm = data.readBytes();
        if (!last || framePart.size() > 0) {
            framePart.writeBytes(pcm);
            pcm = framePart.toByteArray();
        }
        if (pcm.length > Session.FRAME_BYTES || (last && pcm.length < Session.FRAME_BYTES)) {
            close(WsCloseCodes.CANNOT_ACCEPT, "a frame has " + Session.FRAME_BYTES + " bytes");
        } else if (last) {
            framePart.reset();
            frame(pcm);
        }
    }

    private void frame(byte[] pcm) {
        Session.Offer offer = session.offer(pcm, System.nanoTime());
        if (offer == Session.Offer.REFUSED) {
            close(WsCloseCodes.TRY_AGAIN_LATER, "the input buffer is full");
            return;
        }
        shared.metrics().frames.increment();
        if (offer == Session.Offer.DROPPED) {
            shared.metrics().framesDropped.increment();
        }
    }

    @Override
    public void onPing(WsSession from, BufferData payload) {
        if (payload.available() > CONTROL_BYTES_MAX) {
            close(WsCloseCodes.PROTOCOL_ERROR, "the ping is too long");
        } else if (unsent.get() < config.outboxMessages()) {
            // None for a client that does not read what is there already.
            send(() -> webSocket.pong(payload));
        }
    }

    @Override
    public void onClose(WsSession from, int status, String reason) {
        close(maySend(status) ? status : WsCloseCodes.PROTOCOL_ERROR, "");
        // Helidon would answer when this returns, if nobody had: on this thread, perhaps in the middle of a message.
        outbox.close();
    }

    /** Whether RFC 6455 allows a close frame to carry this code. */
    private static boolean maySend(int code) {
        return (code >= 3000 && code <= 4999)
                || (code >= WsCloseCodes.NORMAL_CLOSE && code <= WsCloseCodes.CANNOT_ACCEPT)
                || (code >= WsCloseCodes.NOT_CONSISTENT && code <= WsCloseCodes.BAD_GATEWAY);
    }

    @Override
    public void onError(WsSession from, Throwable error) {
        end();
    }

    private void start() {
        long jitterMax = config.flushPhaseJitter().toNanos();
        long jitter = jitterMax == 0 ? 0 : ThreadLocalRandom.current().nextLong(jitterMax);
        session = new Session(config, System.nanoTime() + jitter);
        Thread.ofVirtual().name("session-clock").start(this::runClock);
    }

    /** Ticks until the connection ends. To join its thread is to sleep until then or until the tick, whichever is first. */
    private void runClock() {
        while (!connectionEnds(Duration.ofNanos(session.nextTickNanos() - System.nanoTime())) && !ended.get()) {
            tick();
        }
    }

    private void tick() {
        int outboxRoom = config.outboxMessages() - unsent.get();
        Session.Tick tick = session.tick(System.nanoTime(), outboxRoom, shared.jobs()::tryAcquire);
        tick.deferred().ifPresent(shared.metrics()::deferred);
        tick.dropped()
                .ifPresent(span -> fail(span, Answer.Failure.overflow(span.frames()), tick.latenessNanos(), null));
        tick.batch().ifPresent(batch -> {
            shared.metrics().flushed(batch);
            Thread.ofVirtual().name("session-infer").start(() -> infer(batch));
        });
    }

    private void infer(Session.Batch batch) {
        long sentNanos = System.nanoTime();
        Answer answer;
        try {
            answer = shared.inference().infer(batch.pcm());
        } finally {
            shared.jobs().release();
        }
        long elapsedNanos = System.nanoTime() - sentNanos;
        shared.metrics().answered(elapsedNanos);
        if (!ended.get()) {
            tell(batch, answer, elapsedNanos);
        }
        // Only now may a tick speak: what it names follows this batch.
        session.answered();
        if (session.isDrained()) {
            closeForDrain();
        }
    }

    private void tell(Session.Batch batch, Answer answer, long elapsedNanos) {
        switch (answer) {
            case Answer.Inference inference -> {
                shared.metrics().partials.increment();
                String message = Messages.partial(batch.span(), inference, config.cpuPasses(), batch.latenessNanos());
                send(() -> webSocket.send(message, true));
            }
            case Answer.Failure failure -> fail(batch.span(), failure, batch.latenessNanos(), elapsedNanos);
        }
    }

    private void fail(Span span, Answer.Failure failure, long latenessNanos, Long elapsedNanos) {
        shared.metrics().error(failure.kind());
        Messages.Context context = new Messages.Context(
                System.nanoTime(), latenessNanos, elapsedNanos, shared.jobs().inUse(), session.bufferFrames());
        String message = Messages.error(span, failure, context);
        send(() -> webSocket.send(message, true));
    }

    /** Puts something into the outbox. A session of Helidon is not for several threads at once, so all goes this way. */
    private void send(Runnable action) {
        unsent.incrementAndGet();
        outbox.execute(() -> {
            try {
                action.run();
                unsent.decrementAndGet();
            } catch (RuntimeException _) {
                // The connection is over, and its reader sees that as well.
            }
        });
    }

    /** The gateway shuts down: only the request in flight is still answered. */
    void drain() {
        Session started = session;
        if (started != null) {
            started.stop();
        }
        if (started == null || started.isDrained()) {
            closeForDrain();
        }
    }

    void closeForDrain() {
        close(WsCloseCodes.GOING_AWAY, "going away");
    }

    /** Ends the session with a close of ours, behind the messages that are not sent yet. */
    private void close(int code, String reason) {
        if (end()) {
            send(() -> webSocket.close(code, reason));
            Thread.ofVirtual().name("session-linger").start(this::linger);
        }
    }

    /** The session is over, whatever the socket does; its place is free. True the first time only. */
    private boolean end() {
        if (!ended.compareAndSet(false, true)) {
            return false;
        }
        shared.sessions().release();
        return true;
    }

    /** Helidon tells a listener of a close frame, and not of a connection that ends without one. Its thread ends, too. */
    private void watch() {
        if (!connectionEnds(config.startTimeout()) && session == null) {
            close(WsCloseCodes.PROTOCOL_ERROR, "no start in time");
        }
        connectionEnds(FOREVER);
        end();
        outbox.shutdownNow();
        gateway.closed(this);
    }

    private void linger() {
        if (!connectionEnds(LINGER)) {
            outbox.shutdownNow();
            connection.interrupt();
        }
    }

    private boolean connectionEnds(Duration within) {
        try {
            return connection.join(within);
        } catch (InterruptedException e) {
            throw new IllegalStateException("nobody interrupts the threads that wait here", e);
        }
    }
}
