package plimsoll.stt.inference;

import java.nio.ByteBuffer;
import java.util.List;
import plimsoll.stt.session.Batch;

/** The audio of a request as far as it is not yet sent. Its memory goes back to the pool as soon as it is copied out. */
final class RequestBody {
    private final Batch batch;
    private final List<ByteBuffer> parts;
    private int nextPart;
    private int left;

    RequestBody(Batch batch) {
        this.batch = batch;
        this.parts = batch.pcm();
        this.left = batch.bytes();
    }

    int bytes() {
        return batch.bytes();
    }

    int left() {
        return left;
    }

    void copy(int count, ByteBuffer out) {
        int wanted = count;
        while (wanted > 0) {
            ByteBuffer part = parts.get(nextPart);
            int copied = Math.min(wanted, part.remaining());
            out.put(out.position(), part, part.position(), copied);
            out.position(out.position() + copied);
            part.position(part.position() + copied);
            wanted -= copied;
            if (!part.hasRemaining()) {
                nextPart++;
            }
        }
        left -= count;
        if (left == 0) {
            batch.release();
        }
    }

    /** Nobody will want the rest. */
    void discard() {
        batch.release();
    }
}
