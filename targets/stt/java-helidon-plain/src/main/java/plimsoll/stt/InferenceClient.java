package plimsoll.stt;

import io.helidon.http.HeaderNames;
import io.helidon.webclient.http2.Http2Client;
import io.helidon.webclient.http2.Http2ClientResponse;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;

/** Blocking requests to the inference server, over a fixed number of HTTP/2 connections that take turns. */
final class InferenceClient {
    private static final int OK = 200;

    private final List<Http2Client> clients;
    private final AtomicInteger turn = new AtomicInteger();
    private final Duration timeout;
    private final String cpuPasses;

    InferenceClient(Config config) {
        this.timeout = config.inferenceTimeout();
        this.cpuPasses = Long.toString(config.cpuPasses());
        // A client of Helidon has one connection to a server, if it does not share those of the others.
        this.clients = Stream.generate(() -> Http2Client.builder()
                        .baseUri(config.inferenceUrl())
                        .shareConnectionCache(false)
                        .protocolConfig(protocol -> protocol.priorKnowledge(true))
                        .connectTimeout(timeout)
                        .readTimeout(timeout)
                        .socketOptions(options -> options.tcpNoDelay(true))
                        .build())
                .limit(config.inferenceConnections())
                .toList();
    }

    Answer infer(byte[] pcm) {
        long sinceNanos = System.nanoTime();
        Http2Client client = clients.get(Math.floorMod(turn.getAndIncrement(), clients.size()));
        try (Http2ClientResponse response = client.post("/infer")
                .header(HeaderNames.CONTENT_TYPE, "application/octet-stream")
                .header(HeaderNames.create("x-cpu-passes"), cpuPasses)
                .submit(pcm)) {
            int status = response.status().code();
            return status == OK ? Json.readAnswer(response.as(byte[].class)) : Answer.Failure.status(status);
        } catch (RuntimeException e) {
            // Helidon has no public exception for a time-out, so the time tells.
            boolean late = System.nanoTime() - sinceNanos >= timeout.toNanos();
            return late ? Answer.Failure.timeout() : Answer.Failure.connection(String.valueOf(e.getMessage()));
        }
    }
}
