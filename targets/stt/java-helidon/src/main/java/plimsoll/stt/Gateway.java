package plimsoll.stt;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import plimsoll.stt.http.SttConnection;
import plimsoll.stt.inference.InferenceClient;
import plimsoll.stt.session.AudioPool;
import plimsoll.stt.session.CloseReason;

/** What all sessions share. Nothing in it is written to for a mere frame. */
public final class Gateway {
    /** Audio's share of the heap. The rest is for what sessions hold besides, and for the collector to breathe. */
    private static final double AUDIO_SHARE_OF_HEAP = 0.5;

    private static final long NOT_DRAINING = Long.MAX_VALUE;
    private static final long DRAIN_POLL_MS = 5;

    private final Config config;
    private final Metrics metrics = new Metrics();
    private final Limit sessions;
    private final Limit jobs;
    private final AudioPool audio;
    private final InferenceClient inference;

    /** Open sockets, a little longer than their sessions: a closing handshake follows. */
    private final Set<SttConnection> connections = ConcurrentHashMap.newKeySet();

    private volatile long drainUntilNanos = NOT_DRAINING;

    public Gateway(Config config) {
        this.config = config;
        this.sessions = new Limit(config.sessionsMax());
        this.jobs = new Limit(config.jobsMax());
        this.audio = new AudioPool((long) (Runtime.getRuntime().maxMemory() * AUDIO_SHARE_OF_HEAP));
        this.inference = new InferenceClient(
                config.inferenceUrl(),
                config.inferenceConnections(),
                config.session().cpuPasses());
    }

    public Config config() {
        return config;
    }

    public Metrics metrics() {
        return metrics;
    }

    /** Open sessions, against {@code MAX_SESSIONS}. */
    public Limit sessions() {
        return sessions;
    }

    /** Requests in flight, against {@code MAX_INFLIGHT_JOBS}. */
    public Limit jobs() {
        return jobs;
    }

    public AudioPool audio() {
        return audio;
    }

    public InferenceClient inference() {
        return inference;
    }

    public boolean isDraining() {
        return drainUntilNanos != NOT_DRAINING;
    }

    public void opened(SttConnection connection) {
        connections.add(connection);
        // Whoever came in while draining began would otherwise not hear of it.
        if (isDraining()) {
            connection.drain(drainUntilNanos);
        }
    }

    public void closed(SttConnection connection) {
        connections.remove(connection);
    }

    /**
     * Refuses new sessions, lets the open ones answer what is in flight, and returns when the last socket is closed or the
     * time for it is nearly over.
     */
    public void drain() throws InterruptedException {
        long begunNanos = Uptime.nanos();
        // Four fifths of the time for what is in flight, so that who gives up can still say so; a twentieth for the
        // exit.
        long untilNanos = begunNanos + config.drainTimeoutNanos() / 5 * 4;
        long overNanos = begunNanos + config.drainTimeoutNanos() / 20 * 19;
        drainUntilNanos = untilNanos;
        connections.forEach(connection -> connection.drain(untilNanos));
        while (!connections.isEmpty() && Uptime.nanos() < overNanos) {
            TimeUnit.MILLISECONDS.sleep(DRAIN_POLL_MS);
            if (Uptime.nanos() > untilNanos) {
                connections.forEach(connection -> connection.close(CloseReason.GOING_AWAY));
            }
        }
    }
}
