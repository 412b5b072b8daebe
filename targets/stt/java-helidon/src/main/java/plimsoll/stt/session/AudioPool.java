package plimsoll.stt.session;

import java.util.ArrayDeque;
import java.util.Collection;

/**
 * The memory for audio, of all sessions together, and a bound on it. Chunks are used again and again: they get old once and
 * then cost the collector nothing. When there are no more, sessions treat their buffers as full, so that too much audio is
 * answered by the overflow policy and not by an {@link OutOfMemoryError}.
 */
public final class AudioPool {
    private final int chunksMax;
    private final ArrayDeque<AudioChunk> free = new ArrayDeque<>();
    private int made;

    public AudioPool(long bytesMax) {
        this.chunksMax = (int) Math.min(Integer.MAX_VALUE, Math.max(1, bytesMax / AudioChunk.BYTES));
    }

    /** A chunk, or null when all are in use. */
    synchronized AudioChunk take() {
        AudioChunk chunk = free.pollLast();
        if (chunk == null && made < chunksMax) {
            made++;
            return new AudioChunk();
        }
        return chunk;
    }

    public synchronized void giveBack(AudioChunk chunk) {
        free.addLast(chunk);
    }

    public synchronized void giveBack(Collection<AudioChunk> chunks) {
        free.addAll(chunks);
    }

    /** Chunks that are somewhere else now. */
    public synchronized int inUse() {
        return made - free.size();
    }
}
