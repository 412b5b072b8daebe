package plimsoll.stt.session;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/** A buffer's whole content on its way out. Whoever holds it gives its chunks back to the pool, once. */
public final class Batch {
    private final Span span;
    private final List<AudioChunk> chunks;
    private final int firstSlot;
    private final AudioPool pool;
    private boolean released;

    Batch(Span span, List<AudioChunk> chunks, int firstSlot, AudioPool pool) {
        this.span = span;
        this.chunks = chunks;
        this.firstSlot = firstSlot;
        this.pool = pool;
    }

    public Span span() {
        return span;
    }

    public int bytes() {
        return Math.toIntExact(span.frames() * Session.FRAME_BYTES);
    }

    /** The samples, in order and without a copy. */
    public List<ByteBuffer> pcm() {
        List<ByteBuffer> views = new ArrayList<>(chunks.size());
        int left = bytes();
        int offset = firstSlot * Session.FRAME_BYTES;
        for (AudioChunk chunk : chunks) {
            int length = Math.min(left, AudioChunk.BYTES - offset);
            views.add(ByteBuffer.wrap(chunk.pcm(), offset, length));
            left -= length;
            offset = 0;
        }
        return views;
    }

    /** Gives the memory back. The views of {@link #pcm} are somebody else's audio from now on. */
    public void release() {
        if (!released) {
            released = true;
            pool.giveBack(chunks);
        }
    }
}
