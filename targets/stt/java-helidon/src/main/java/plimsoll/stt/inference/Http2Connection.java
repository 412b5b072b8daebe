package plimsoll.stt.inference;

import io.helidon.common.buffers.BufferData;
import io.helidon.http.http2.Http2ErrorCode;
import io.helidon.http.http2.Http2FrameType;
import io.helidon.http.http2.Http2Setting;
import io.helidon.http.http2.Http2Settings;
import io.helidon.http.http2.Http2Util;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import plimsoll.stt.Uptime;
import plimsoll.stt.message.Failure;

/**
 * One HTTP/2 connection with prior knowledge, shared by many requests. Two virtual threads serve it: one reads and one
 * writes, and both block. So requests are written in the order of their streams, whatever is ready goes out in one write,
 * and nobody who gives up a request can interrupt a write that others depend on.
 */
final class Http2Connection {
    /** Some seven requests in one write. Direct, so that the JDK need not copy it once more. */
    private static final int WRITE_BUFFER_BYTES = 256 * 1024;

    /** Credit for answers, given at the start and again when half of it is used. */
    private static final int RECEIVE_WINDOW_BYTES = 4 * 1024 * 1024;

    private static final int DEFAULT_WINDOW_BYTES = 65_535;
    private static final int HEADERS_BYTES_MAX = 512;
    private static final long WINDOW_MAX = Integer.MAX_VALUE;

    /** How long a silent connection has to answer a ping before it counts as lost. */
    private static final long PING_PATIENCE_NANOS = TimeUnit.SECONDS.toNanos(5);

    /** Numbers of streams run out after a week or two. There must be some left for the requests that wait already. */
    private static final int STREAM_ID_LAST = Integer.MAX_VALUE - 1_000_000;

    private static final byte[] PING_OPAQUE = new byte[8];

    private final SocketChannel channel;
    private final byte[] requestBlock;

    private final ReentrantLock lock = new ReentrantLock();
    // All below is guarded by the lock.
    private final Condition somethingToWrite = lock.newCondition();
    private final ArrayDeque<byte[]> control = new ArrayDeque<>();
    private final ArrayDeque<Exchange> outgoing = new ArrayDeque<>();
    private final Map<Integer, Exchange> streams = new HashMap<>();
    private String closedBecause;
    private boolean goingAway;
    private int nextStreamId = 1;
    private long window = DEFAULT_WINDOW_BYTES;
    private long streamWindow = DEFAULT_WINDOW_BYTES;
    private long streamsMax = Long.MAX_VALUE;
    private int frameBytesMax = 16 * 1024;
    private int unacknowledgedBytes;
    private long pingedAtNanos;
    private volatile long readAtNanos;

    Http2Connection(SocketChannel channel, byte[] requestBlock) {
        this.channel = channel;
        this.requestBlock = requestBlock;
    }

    void start() {
        lock.lock();
        try {
            control.add(Http2Util.prefaceData().readBytes());
            BufferData settings = BufferData.growing(16);
            settings.writeInt16(Http2Setting.ENABLE_PUSH.identifier());
            settings.writeInt32(0);
            control.add(Http2Frames.frame(Http2FrameType.SETTINGS, 0, 0, settings.readBytes()));
            control.add(Http2Frames.windowUpdate(RECEIVE_WINDOW_BYTES - DEFAULT_WINDOW_BYTES));
        } finally {
            lock.unlock();
        }
        Http2Reader reader = new Http2Reader(channel, this);
        Thread.ofVirtual().name("inference-read").start(() -> {
            try {
                reader.run();
            } catch (IOException | RuntimeException e) {
                close(String.valueOf(e.getMessage()));
            }
        });
        Thread.ofVirtual().name("inference-write").start(this::write);
    }

    /** Takes a request on; false if this connection takes no more, and then nothing of the request was sent. */
    boolean send(Exchange exchange) {
        lock.lock();
        try {
            if (!isOpen()) {
                return false;
            }
            outgoing.addLast(exchange);
            somethingToWrite.signal();
            return true;
        } finally {
            lock.unlock();
        }
    }

    boolean isOpen() {
        lock.lock();
        try {
            return closedBecause == null && !goingAway;
        } finally {
            lock.unlock();
        }
    }

    /** Gives a request up. */
    void cancel(Exchange exchange) {
        lock.lock();
        try {
            exchange.abandon();
            if (exchange.body().left() > 0 && outgoing.remove(exchange)) {
                exchange.body().discard();
            }
            if (exchange.streamId() != 0 && streams.remove(exchange.streamId()) != null) {
                enqueue(Http2Frames.reset(exchange.streamId(), Http2ErrorCode.CANCEL));
            }
            askForSignOfLife(exchange);
            closeIfLeft();
        } finally {
            lock.unlock();
        }
    }

    /** A request that was given up on a connection that has been silent since may mean that its peer is gone. */
    private void askForSignOfLife(Exchange exchange) {
        if (readAtNanos > exchange.madeAtNanos()) {
            return;
        }
        long now = Uptime.nanos();
        if (pingedAtNanos == 0) {
            pingedAtNanos = now;
            enqueue(Http2Frames.ping(PING_OPAQUE, false));
        } else if (now - pingedAtNanos > PING_PATIENCE_NANOS) {
            close("no answer to a ping");
        }
    }

    private void enqueue(byte[] frame) {
        control.addLast(frame);
        somethingToWrite.signal();
    }

    private void write() {
        ByteBuffer out = ByteBuffer.allocateDirect(WRITE_BUFFER_BYTES);
        try {
            while (collect(out)) {
                out.flip();
                while (out.hasRemaining()) {
                    channel.write(out);
                }
                out.clear();
            }
        } catch (IOException | RuntimeException e) {
            close(String.valueOf(e.getMessage()));
        } catch (InterruptedException e) {
            close("interrupted");
        }
    }

    /** Fills {@code out} with all that may be written now and waits until that is something; false when it is over. */
    private boolean collect(ByteBuffer out) throws InterruptedException {
        lock.lockInterruptibly();
        try {
            while (closedBecause == null) {
                while (!control.isEmpty() && control.peekFirst().length <= out.remaining()) {
                    out.put(control.pollFirst());
                }
                collectRequests(out);
                if (out.position() > 0) {
                    return true;
                }
                somethingToWrite.await();
            }
            return false;
        } finally {
            lock.unlock();
        }
    }

    private void collectRequests(ByteBuffer out) {
        for (Iterator<Exchange> each = outgoing.iterator(); each.hasNext(); ) {
            if (out.remaining() < HEADERS_BYTES_MAX + requestBlock.length) {
                return;
            }
            Exchange exchange = each.next();
            if (exchange.isDone()) {
                each.remove();
                exchange.body().discard();
                continue;
            }
            if (exchange.streamId() == 0) {
                if (streams.size() >= streamsMax) {
                    return;
                }
                exchange.begin(nextStreamId, streamWindow);
                streams.put(nextStreamId, exchange);
                Http2Frames.requestHeaders(
                        out, requestBlock, nextStreamId, exchange.body().bytes());
                nextStreamId += 2;
                goingAway |= nextStreamId > STREAM_ID_LAST;
            }
            if (collectBody(exchange, out)) {
                each.remove();
            }
        }
    }

    /** Whether the body is wholly on its way; if not, a window is shut or {@code out} is full. */
    private boolean collectBody(Exchange exchange, ByteBuffer out) {
        RequestBody body = exchange.body();
        while (body.left() > 0) {
            long room = Math.min(Math.min(window, exchange.window()), out.remaining() - Http2Frames.HEADER_BYTES);
            int count = (int) Math.min(Math.min(body.left(), frameBytesMax), room);
            if (count <= 0) {
                return false;
            }
            int flags = count == body.left() ? Http2Frames.FLAG_END_STREAM : 0;
            Http2Frames.header(out, count, Http2FrameType.DATA, flags, exchange.streamId());
            exchange.sendBody(count, out);
            window -= count;
        }
        return true;
    }

    // What the reader says.

    void onRead() {
        readAtNanos = Uptime.nanos();
    }

    void onSettings(Http2Settings settings) {
        lock.lock();
        try {
            pingedAtNanos = 0;
            if (settings.hasValue(Http2Setting.MAX_CONCURRENT_STREAMS)) {
                streamsMax = settings.value(Http2Setting.MAX_CONCURRENT_STREAMS);
            }
            if (settings.hasValue(Http2Setting.MAX_FRAME_SIZE)) {
                frameBytesMax = Math.toIntExact(settings.value(Http2Setting.MAX_FRAME_SIZE));
            }
            if (settings.hasValue(Http2Setting.INITIAL_WINDOW_SIZE)) {
                long change = settings.value(Http2Setting.INITIAL_WINDOW_SIZE) - streamWindow;
                streamWindow += change;
                streams.values().forEach(exchange -> exchange.widen(change));
            }
            enqueue(Http2Frames.settingsAck());
        } finally {
            lock.unlock();
        }
    }

    void onWindowUpdate(int streamId, int increment) {
        lock.lock();
        try {
            if (streamId == 0) {
                window += increment;
                if (window > WINDOW_MAX) {
                    close("a window over 2^31-1");
                }
            } else {
                Exchange exchange = streams.get(streamId);
                if (exchange != null) {
                    exchange.widen(increment);
                }
            }
            somethingToWrite.signal();
        } finally {
            lock.unlock();
        }
    }

    void onPing(byte[] opaque, boolean ack) {
        lock.lock();
        try {
            if (ack) {
                pingedAtNanos = 0;
            } else {
                enqueue(Http2Frames.ping(opaque, true));
            }
        } finally {
            lock.unlock();
        }
    }

    void onStatus(int streamId, int status) {
        lock.lock();
        try {
            Exchange exchange = streams.get(streamId);
            if (exchange != null) {
                exchange.onStatus(status);
            }
        } finally {
            lock.unlock();
        }
    }

    /** {@code counted} bytes, with padding, count for the windows; of these the payload is what is given. */
    void onData(int streamId, byte[] bytes, int offset, int length, int counted) {
        lock.lock();
        try {
            unacknowledgedBytes += counted;
            if (unacknowledgedBytes >= RECEIVE_WINDOW_BYTES / 2) {
                enqueue(Http2Frames.windowUpdate(unacknowledgedBytes));
                unacknowledgedBytes = 0;
            }
            // A stream that is not there was given up.
            Exchange exchange = streams.get(streamId);
            if (exchange != null && !exchange.onData(bytes, offset, length)) {
                streams.remove(streamId);
                enqueue(Http2Frames.reset(streamId, Http2ErrorCode.CANCEL));
                exchange.fail(Failure.parse("too long"));
            }
        } finally {
            lock.unlock();
        }
    }

    void onEndOfStream(int streamId) {
        lock.lock();
        try {
            Exchange exchange = streams.remove(streamId);
            if (exchange == null) {
                return;
            }
            if (exchange.body().left() > 0) {
                // Answered before it was asked: nobody wants the rest.
                enqueue(Http2Frames.reset(streamId, Http2ErrorCode.NO_ERROR));
            }
            exchange.complete();
            somethingToWrite.signal();
            closeIfLeft();
        } finally {
            lock.unlock();
        }
    }

    void onReset(int streamId, int code) {
        lock.lock();
        try {
            Exchange exchange = streams.remove(streamId);
            if (exchange != null) {
                exchange.fail(Failure.connection("stream reset with code " + code));
            }
            somethingToWrite.signal();
            closeIfLeft();
        } finally {
            lock.unlock();
        }
    }

    /** Streams up to {@code lastStreamId} may still be answered, the others are not, and new ones go elsewhere. */
    void onGoAway(int lastStreamId) {
        lock.lock();
        try {
            goingAway = true;
            streams.values().removeIf(exchange -> {
                boolean lost = exchange.streamId() > lastStreamId;
                if (lost) {
                    exchange.fail(Failure.connection("the server goes away"));
                }
                return lost;
            });
            outgoing.stream()
                    .filter(exchange -> exchange.streamId() == 0)
                    .forEach(exchange -> exchange.fail(Failure.connection("the server goes away")));
            somethingToWrite.signal();
            closeIfLeft();
        } finally {
            lock.unlock();
        }
    }

    /** Ends a connection that takes no more requests and owes no more answers. */
    private void closeIfLeft() {
        if (goingAway && streams.isEmpty()) {
            close("the server went away");
        }
    }

    /** Ends the connection and all its requests. The first cause stands. */
    void close(String cause) {
        lock.lock();
        try {
            if (closedBecause != null) {
                return;
            }
            closedBecause = cause;
            Failure failure = Failure.connection(cause);
            streams.values().forEach(exchange -> exchange.fail(failure));
            streams.clear();
            outgoing.forEach(exchange -> {
                exchange.fail(failure);
                exchange.body().discard();
            });
            outgoing.clear();
            somethingToWrite.signal();
        } finally {
            lock.unlock();
        }
        try {
            channel.close();
        } catch (IOException _) {
            // It is of no use any more, closed or not.
        }
    }
}
