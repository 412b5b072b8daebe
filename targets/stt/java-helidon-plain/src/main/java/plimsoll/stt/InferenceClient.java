package plimsoll.stt;

import io.helidon.http.HeaderName;
import io.helidon.http.HeaderNames;
import io.helidon.webclient.http1.Http1Client;
import io.helidon.webclient.http1.Http1ClientResponse;
import java.time.Duration;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;

/** Blocking requests to the inference server, over HTTP/1.1 connections that are kept alive. */
final class InferenceClient {
    private static final HeaderName CPU_PASSES = HeaderNames.create("x-cpu-passes");
    private static final int OK = 200;

    /** Connections that are kept while nobody needs them. Helidon's default of 256 is less than a gateway has sessions. */
    private static final int IDLE_CONNECTIONS_MAX = 4096;

    private final Http1Client client;
    private final Semaphore connections;
    private final Duration timeout;
    private final String cpuPasses;

    InferenceClient(Config config) {
        this.timeout = config.inferenceTimeout();
        this.cpuPasses = Long.toString(config.cpuPasses());
        this.connections =
                new Semaphore(config.inferenceConnections() == 0 ? Integer.MAX_VALUE : config.inferenceConnections());
        this.client = Http1Client.builder()
                .baseUri(config.inferenceUrl())
                .connectionCacheSize(IDLE_CONNECTIONS_MAX)
                .connectTimeout(timeout)
                .readTimeout(timeout)
                .socketOptions(options -> options.tcpNoDelay(true))
                .build();
    }

    Answer infer(byte[] pcm) {
        try {
            if (!connections.tryAcquire(timeout.toNanos(), TimeUnit.NANOSECONDS)) {
                return Answer.Failure.timeout();
            }
        } catch (InterruptedException e) {
            throw new IllegalStateException("nobody interrupts a request", e);
        }
        try {
            return request(pcm);
        } finally {
            connections.release();
        }
    }

    private Answer request(byte[] pcm) {
        long sinceNanos = System.nanoTime();
        try (Http1ClientResponse response = client.post("/infer")
                .header(HeaderNames.CONTENT_TYPE, "application/octet-stream")
                .header(CPU_PASSES, cpuPasses)
                .submit(pcm)) {
            int status = response.status().code();
            return status == OK ? Json.readAnswer(response.as(byte[].class)) : Answer.Failure.status(status);
        } catch (RuntimeException e) {
            // Helidon wraps what a socket throws in different ways, so the time tells a time-out.
            boolean late = System.nanoTime() - sinceNanos >= timeout.toNanos();
            return late ? Answer.Failure.timeout() : Answer.Failure.connection(String.valueOf(e.getMessage()));
        }
    }
}
