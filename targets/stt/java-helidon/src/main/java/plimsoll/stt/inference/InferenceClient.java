package plimsoll.stt.inference;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.net.URI;
import java.nio.channels.SocketChannel;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.LongSupplier;
import java.util.stream.Stream;
import plimsoll.stt.Uptime;
import plimsoll.stt.message.Answer;
import plimsoll.stt.message.Failure;
import plimsoll.stt.session.Batch;

/**
 * The way to the inference server: a blocking call, over a fixed set of shared connections that are made on first use and
 * made anew when lost.
 */
public final class InferenceClient {
    private static final int DEFAULT_PORT = 80;
    private static final long CONNECT_NANOS_MAX = TimeUnit.SECONDS.toNanos(5);

    private final String host;
    private final int port;
    private final byte[] requestBlock;
    private final List<Place> places;
    private final AtomicInteger turn = new AtomicInteger();

    /** A place for a connection. Its lock is held while connecting, so that a lost one is made anew once. */
    private static final class Place {
        private final ReentrantLock lock = new ReentrantLock();
        private volatile Http2Connection connection;
    }

    public InferenceClient(URI url, int connections, long cpuPasses) {
        // An IPv6 address has brackets in a URL and none in a socket address.
        this.host = url.getHost().replaceAll("[\\[\\]]", "");
        this.port = url.getPort() < 0 ? DEFAULT_PORT : url.getPort();
        this.requestBlock = Http2Frames.requestBlock(url, cpuPasses);
        this.places = Stream.generate(Place::new).limit(connections).toList();
    }

    /**
     * Sends one batch, whose memory is given back on the way, and waits for its answer until {@code giveUpAtNanos}, which is
     * asked again whenever this thread is unparked.
     */
    public Answer infer(Batch batch, LongSupplier giveUpAtNanos) {
        Exchange exchange = new Exchange(batch);
        Place place = places.get(Math.floorMod(turn.getAndIncrement(), places.size()));
        Http2Connection connection;
        try {
            connection = connection(place, giveUpAtNanos);
            // It may have ended since; then nothing was sent, and a new one may be tried, once.
            if (!connection.send(exchange)) {
                connection = connection(place, giveUpAtNanos);
                if (!connection.send(exchange)) {
                    throw new IOException("closed by the server");
                }
            }
        } catch (IOException e) {
            exchange.body().discard();
            return Failure.connection(String.valueOf(e.getMessage()));
        }
        Answer answer = exchange.await(giveUpAtNanos).orElse(null);
        if (answer == null) {
            connection.cancel(exchange);
            return Failure.timeout();
        }
        return answer;
    }

    private Http2Connection connection(Place place, LongSupplier giveUpAtNanos) throws IOException {
        Http2Connection connection = place.connection;
        if (connection != null && connection.isOpen()) {
            return connection;
        }
        long patienceNanos = Math.min(CONNECT_NANOS_MAX, giveUpAtNanos.getAsLong() - Uptime.nanos());
        try {
            if (!place.lock.tryLock(patienceNanos, TimeUnit.NANOSECONDS)) {
                throw new IOException("not connected in time");
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IOException("interrupted", e);
        }
        try {
            connection = place.connection;
            if (connection == null || !connection.isOpen()) {
                connection = connect(patienceNanos);
                place.connection = connection;
            }
            return connection;
        } finally {
            place.lock.unlock();
        }
    }

    private Http2Connection connect(long patienceNanos) throws IOException {
        SocketChannel channel = SocketChannel.open();
        try {
            channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
            int patienceMs = (int) Math.max(1, TimeUnit.NANOSECONDS.toMillis(patienceNanos));
            channel.socket().connect(new InetSocketAddress(host, port), patienceMs);
            Http2Connection connection = new Http2Connection(channel, requestBlock);
            connection.start();
            return connection;
        } catch (IOException | RuntimeException e) {
            channel.close();
            throw e instanceof IOException io ? io : new IOException("cannot connect to " + host, e);
        }
    }
}
