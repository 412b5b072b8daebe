package plimsoll.stt;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Optional;
import java.util.function.BooleanSupplier;

/**
 * The rules of one session: schedule, buffer, ledger, overflow. It has no clock, no socket and no thread: times are passed in.
 * The threads of a session share it, so its methods are synchronized.
 */
final class Session {
    static final int FRAME_BYTES = 640;

    /** What became of a frame, or of an older one in its place. */
    enum Offer {
        KEPT,
        DROPPED,
        /** The policy is to close: the frame is not accepted. */
        REFUSED
    }

    /** A whole buffer on its way to inference. */
    record Batch(Span span, long latenessNanos, byte[] pcm) {}

    /** What a tick asks its caller to do: name the dropped frames, then send the batch. */
    record Tick(long latenessNanos, Optional<Span> dropped, Optional<Deferral> deferred, Optional<Batch> batch) {}

    private record Frame(byte[] pcm, long atNanos) {}

    private final int maxBufferFrames;
    private final OverflowPolicy overflowPolicy;
    private final long intervalNanos;
    private final Deque<Frame> buffer = new ArrayDeque<>();
    private long nextTickNanos;
    private long lastSeq;
    // Frames dropped and not named yet: those older than the buffer, and those newer (DROP_NEWEST). Each is one range,
    // because nothing is kept between two drops on the same side.
    private Span droppedBefore;
    private Span droppedBehind;
    // Only a tick that finds it false sets it: there is one request in flight at most.
    private boolean inFlight;
    private boolean stopped;

    /** A session whose schedule counts from {@code originNanos}: its start and its share of the jitter. */
    Session(Config config, long originNanos) {
        this.maxBufferFrames = config.maxBufferFrames();
        this.overflowPolicy = config.overflowPolicy();
        this.intervalNanos = config.flushInterval().toNanos();
        this.nextTickNanos = originNanos + intervalNanos;
    }

    synchronized long nextTickNanos() {
        return nextTickNanos;
    }

    synchronized int bufferFrames() {
        return buffer.size();
    }

    /** Takes the next frame, and the number that goes with it. */
    synchronized Offer offer(byte[] pcm, long atNanos) {
        boolean full = buffer.size() >= maxBufferFrames;
        if (full && overflowPolicy == OverflowPolicy.CLOSE) {
            return Offer.REFUSED;
        }
        lastSeq++;
        if (full && overflowPolicy == OverflowPolicy.DROP_NEWEST) {
            droppedBehind = extended(droppedBehind, lastSeq, atNanos);
            return Offer.DROPPED;
        }
        buffer.addLast(new Frame(pcm, atNanos));
        if (!full) {
            return Offer.KEPT;
        }
        Frame oldest = buffer.removeFirst();
        droppedBefore = extended(droppedBefore, lastSeq - buffer.size(), oldest.atNanos());
        return Offer.DROPPED;
    }

    /**
     * Runs the tick that is due. {@code outboxRoom} is how many messages may be sent before the outbox is full. A job is
     * taken only for a batch; the receiver of the batch gives it back.
     */
    synchronized Tick tick(long nowNanos, int outboxRoom, BooleanSupplier takeJob) {
        long latenessNanos = Math.max(0, nowNanos - nextTickNanos);
        // Ticks that were missed are passed over; the later ones stay where they are.
        nextTickNanos += (latenessNanos / intervalNanos + 1) * intervalNanos;
        if (stopped) {
            return new Tick(latenessNanos, Optional.empty(), Optional.empty(), Optional.empty());
        }
        Optional<Span> dropped = Optional.empty();
        int room = outboxRoom;
        if (!inFlight && droppedBefore != null && room > 0) {
            dropped = Optional.of(droppedBefore);
            droppedBefore = null;
            room--;
        }
        Optional<Deferral> deferred = Optional.empty();
        if (!buffer.isEmpty()) {
            if (inFlight) {
                deferred = Optional.of(Deferral.INFLIGHT);
            } else if (room <= 0) {
                deferred = Optional.of(Deferral.OUTBOX);
            } else if (!takeJob.getAsBoolean()) {
                deferred = Optional.of(Deferral.JOBS);
            } else {
                return new Tick(latenessNanos, dropped, deferred, Optional.of(flush(latenessNanos)));
            }
        }
        return new Tick(latenessNanos, dropped, deferred, Optional.empty());
    }

    /** The whole buffer as one batch, which is in flight from now until {@link #answered}. */
    private Batch flush(long latenessNanos) {
        inFlight = true;
        long newestSeq = droppedBehind == null ? lastSeq : droppedBehind.oldestSeq() - 1;
        Span span = new Span(
                newestSeq - buffer.size() + 1,
                newestSeq,
                buffer.getFirst().atNanos(),
                buffer.getLast().atNanos());
        byte[] pcm = new byte[buffer.size() * FRAME_BYTES];
        int offset = 0;
        for (Frame frame : buffer) {
            System.arraycopy(frame.pcm(), 0, pcm, offset, FRAME_BYTES);
            offset += FRAME_BYTES;
        }
        buffer.clear();
        // What was behind the buffer is before what is to come.
        droppedBefore = droppedBehind;
        droppedBehind = null;
        return new Batch(span, latenessNanos, pcm);
    }

    /** The request in flight has ended, and its message is in the outbox. */
    synchronized void answered() {
        inFlight = false;
    }

    /** No more flushes. */
    synchronized void stop() {
        stopped = true;
    }

    /** Whether the session is stopped, and owes no answer. */
    synchronized boolean isDrained() {
        return stopped && !inFlight;
    }

    private static Span extended(Span span, long seq, long atNanos) {
        return span == null ? new Span(seq, seq, atNanos, atNanos) : span.extendedTo(seq, atNanos);
    }
}
