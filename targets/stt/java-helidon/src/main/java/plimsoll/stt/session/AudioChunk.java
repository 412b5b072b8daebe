package plimsoll.stt.session;

/** Room for a fifth of a second of audio, with the time of receipt of each frame. Belongs to one owner at a time. */
public final class AudioChunk {
    /** Frames in a chunk. Five chunks are the second that is usually flushed, and what a session wastes is at most this. */
    static final int FRAMES = 10;

    public static final int BYTES = FRAMES * Session.FRAME_BYTES;

    private final byte[] pcm = new byte[BYTES];
    private final long[] receivedAtNanos = new long[FRAMES];

    void put(int slot, byte[] frame, long atNanos) {
        System.arraycopy(frame, 0, pcm, slot * Session.FRAME_BYTES, Session.FRAME_BYTES);
        receivedAtNanos[slot] = atNanos;
    }

    long receivedAtNanos(int slot) {
        return receivedAtNanos[slot];
    }

    public byte[] pcm() {
        return pcm;
    }
}
