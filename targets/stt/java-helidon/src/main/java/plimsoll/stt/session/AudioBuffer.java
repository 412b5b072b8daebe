package plimsoll.stt.session;

import java.util.ArrayDeque;
import java.util.List;
import java.util.Optional;

/**
 * Numbers the frames of a session and holds those that wait.
 *
 * <p>Frames leave in the order of their numbers, in up to three contiguous ranges: dropped before the buffer, buffered,
 * dropped after it. Dropping the oldest makes the first kind, dropping the newest the last, which comes first once the
 * buffer has been taken. While there is a range behind the buffer nothing more can be buffered, for a batch has no gaps.
 */
final class AudioBuffer {
    private final OverflowPolicy policy;
    private final int framesMax;
    private final AudioPool pool;
    private final ArrayDeque<AudioChunk> chunks = new ArrayDeque<>(8);
    /** Slots of the first chunk whose frames are dropped already. */
    private int firstSlot;

    private int frames;
    private long nextSeq = 1;
    private Span droppedBefore;
    private Span droppedAfter;
    private long droppedCount;

    AudioBuffer(OverflowPolicy policy, int framesMax, AudioPool pool) {
        this.policy = policy;
        this.framesMax = framesMax;
        this.pool = pool;
    }

    /** Takes in the next frame, or drops one by the policy. False when the policy is to close: it is not accepted. */
    boolean push(byte[] frame, long nowNanos) {
        boolean full = frames == framesMax;
        if (full && policy == OverflowPolicy.DROP_OLDEST && droppedAfter == null) {
            dropOldest();
        } else if (full || droppedAfter != null) {
            return dropNewest(nowNanos);
        }
        int slot = (firstSlot + frames) % AudioChunk.FRAMES;
        if (slot == 0 || chunks.isEmpty()) {
            AudioChunk chunk = pool.take();
            if (chunk == null) {
                return dropNewest(nowNanos);
            }
            chunks.addLast(chunk);
        }
        chunks.getLast().put(slot, frame, nowNanos);
        frames++;
        nextSeq++;
        return true;
    }

    private boolean dropNewest(long nowNanos) {
        if (policy == OverflowPolicy.CLOSE) {
            return false;
        }
        if (frames == 0) {
            // Behind nothing is before what is to come.
            droppedBefore = extend(droppedBefore, nextSeq, nowNanos);
        } else {
            droppedAfter = extend(droppedAfter, nextSeq, nowNanos);
        }
        droppedCount++;
        nextSeq++;
        return true;
    }

    private void dropOldest() {
        droppedBefore = extend(droppedBefore, oldestSeq(), chunks.getFirst().receivedAtNanos(firstSlot));
        droppedCount++;
        frames--;
        firstSlot++;
        if (firstSlot == AudioChunk.FRAMES) {
            pool.giveBack(chunks.removeFirst());
            firstSlot = 0;
        }
    }

    private static Span extend(Span dropped, long seq, long atNanos) {
        return dropped == null ? new Span(seq, seq, atNanos, atNanos) : dropped.extendedTo(seq, atNanos);
    }

    int frames() {
        return frames;
    }

    /** Frames dropped since the last call. */
    long takeDroppedCount() {
        long count = droppedCount;
        droppedCount = 0;
        return count;
    }

    /** When the oldest of what waits was received; empty if a tick would find nothing to send and nothing to report. */
    Optional<Long> waitingSinceNanos() {
        if (droppedBefore != null) {
            return Optional.of(droppedBefore.oldestAtNanos());
        }
        return frames == 0 ? Optional.empty() : Optional.of(chunks.getFirst().receivedAtNanos(firstSlot));
    }

    /** The dropped frames that come before the buffered ones. They must be reported before {@link #take}. */
    Optional<Span> takeDropped() {
        Optional<Span> dropped = Optional.ofNullable(droppedBefore);
        droppedBefore = null;
        return dropped;
    }

    /** Takes the whole buffer, if it holds anything. */
    Optional<Batch> take() {
        if (droppedBefore != null) {
            throw new IllegalStateException("dropped frames are named before those that follow them");
        }
        if (frames == 0) {
            return Optional.empty();
        }
        int lastSlot = (firstSlot + frames - 1) % AudioChunk.FRAMES;
        Span span = new Span(
                oldestSeq(),
                oldestSeq() + frames - 1,
                chunks.getFirst().receivedAtNanos(firstSlot),
                chunks.getLast().receivedAtNanos(lastSlot));
        Batch batch = new Batch(span, List.copyOf(chunks), firstSlot, pool);
        chunks.clear();
        firstSlot = 0;
        frames = 0;
        droppedBefore = droppedAfter;
        droppedAfter = null;
        return Optional.of(batch);
    }

    /** Forgets all that waits. */
    void clear() {
        pool.giveBack(chunks);
        chunks.clear();
        firstSlot = 0;
        frames = 0;
    }

    private long oldestSeq() {
        long after = droppedAfter == null ? 0 : droppedAfter.frames();
        return nextSeq - after - frames;
    }
}
