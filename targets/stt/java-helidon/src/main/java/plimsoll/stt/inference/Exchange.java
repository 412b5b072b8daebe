package plimsoll.stt.inference;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.util.Optional;
import java.util.concurrent.locks.LockSupport;
import java.util.function.LongSupplier;
import plimsoll.stt.Uptime;
import plimsoll.stt.message.Answer;
import plimsoll.stt.message.AnswerReader;
import plimsoll.stt.message.Failure;
import plimsoll.stt.session.Batch;

/**
 * One request and its answer. The thread that made it parks until it is done; the connection's two threads do the rest, and
 * what they share is guarded by the connection's lock.
 */
final class Exchange {
    /** Longest answer that is read; a good one has some 150 bytes. Less than a stream's window, which is never widened. */
    private static final int ANSWER_BYTES_MAX = 60_000;

    private static final int ANSWER_BYTES_EXPECTED = 256;
    private static final int OK = 200;

    private final Thread waiting = Thread.currentThread();
    private final long madeAtNanos = Uptime.nanos();
    private final RequestBody body;
    private volatile boolean done;
    private Failure failure;

    /** 0 until the headers are on their way. */
    private int streamId;

    private long window;
    private int status;
    private ByteArrayOutputStream answer;

    Exchange(Batch batch) {
        this.body = new RequestBody(batch);
    }

    /** The answer; empty if there is none by {@code giveUpAtNanos}, which is asked again when this thread is unparked. */
    Optional<Answer> await(LongSupplier giveUpAtNanos) {
        while (!done) {
            long giveUp = giveUpAtNanos.getAsLong();
            long now = Uptime.nanos();
            if (giveUp <= now) {
                return Optional.empty();
            }
            LockSupport.parkNanos(this, giveUp - now);
        }
        // Parsed here, by the thread that waited, and not by the one that reads for all.
        return Optional.of(failure != null ? failure : parse());
    }

    /** The answer is whole. */
    void complete() {
        done = true;
        LockSupport.unpark(waiting);
    }

    /** There will be no answer. The first end stands. */
    void fail(Failure reason) {
        if (!done) {
            failure = reason;
            complete();
        }
    }

    /** Nobody waits any more. */
    void abandon() {
        done = true;
    }

    boolean isDone() {
        return done;
    }

    long madeAtNanos() {
        return madeAtNanos;
    }

    RequestBody body() {
        return body;
    }

    int streamId() {
        return streamId;
    }

    void begin(int id, long initialWindow) {
        streamId = id;
        window = initialWindow;
    }

    long window() {
        return window;
    }

    void widen(long increment) {
        window += increment;
    }

    /** Copies the next {@code count} bytes of the body to {@code out}. */
    void sendBody(int count, ByteBuffer out) {
        body.copy(count, out);
        window -= count;
    }

    /** The last status stands: a final one follows those of 1xx. Trailers have none. */
    void onStatus(int code) {
        status = code;
    }

    /** Adds to the answer; false when it is longer than any answer may be. */
    boolean onData(byte[] bytes, int offset, int length) {
        if (answer == null) {
            answer = new ByteArrayOutputStream(Math.max(length, ANSWER_BYTES_EXPECTED));
        }
        answer.write(bytes, offset, length);
        return answer.size() <= ANSWER_BYTES_MAX;
    }

    private Answer parse() {
        if (status != OK) {
            return status == 0 ? Failure.connection("an answer without a status") : Failure.status(status);
        }
        return AnswerReader.read(answer == null ? new byte[0] : answer.toByteArray());
    }
}
