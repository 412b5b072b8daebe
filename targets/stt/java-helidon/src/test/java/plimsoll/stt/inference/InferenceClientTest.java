package plimsoll.stt.inference;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.ServerSocket;
import java.net.URI;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.function.IntFunction;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import plimsoll.stt.Uptime;
import plimsoll.stt.message.Answer;
import plimsoll.stt.message.Failure;
import plimsoll.stt.message.FailureKind;
import plimsoll.stt.session.AudioPool;
import plimsoll.stt.session.Batch;
import plimsoll.stt.session.OverflowPolicy;
import plimsoll.stt.session.Session;
import plimsoll.stt.session.Settings;
import plimsoll.stt.session.Tick;
import plimsoll.stt.session.Violation;
import plimsoll.stt.support.FakeInference;
import plimsoll.stt.support.FakeInference.Reaction;
import plimsoll.stt.support.Synthetic;

@Timeout(30)
class InferenceClientTest {
    private static final long GOLDEN_CHECKSUM = 1_745_339_397L;
    private static final int WINDOW = 65_535;

    private final AudioPool pool = new AudioPool(64 << 20);

    @AfterEach
    void allMemoryIsBack() {
        assertEquals(0, pool.inUse());
    }

    /** A batch of synthetic audio, as a session makes it. */
    private Batch batch(int frames) {
        Settings settings = new Settings(1, 1, 1, 5000, OverflowPolicy.DROP_OLDEST, 1, 4);
        Session session = new Session(settings, pool, 0, 0);
        try {
            session.onText("{\"type\":\"start\"}", 0);
            for (int seq = 1; seq <= frames; seq++) {
                session.onFrame(Synthetic.frame(0, seq), 0);
            }
        } catch (Violation e) {
            throw new AssertionError(e);
        }
        Tick tick = session.tick(1, new Tick.Leave(0, () -> true));
        return assertInstanceOf(Tick.Flushed.class, tick).batch();
    }

    private Answer infer(InferenceClient client, int frames, long timeoutMs) {
        long giveUpAt = Uptime.nanos() + TimeUnit.MILLISECONDS.toNanos(timeoutMs);
        return client.infer(batch(frames), () -> giveUpAt);
    }

    private static InferenceClient client(FakeInference server) {
        return new InferenceClient(server.url(), 1, 4);
    }

    private static FailureKind kind(Answer answer) {
        return assertInstanceOf(Failure.class, answer).kind();
    }

    private static IntFunction<Reaction> first(Reaction reaction) {
        return n -> n == 1 ? reaction : FakeInference.ANSWER;
    }

    @Test
    void theGoldenFrame() throws IOException {
        try (FakeInference server = new FakeInference(WINDOW, _ -> FakeInference.ANSWER)) {
            Answer answer = infer(client(server), 1, 5000);
            assertEquals(
                    GOLDEN_CHECKSUM,
                    assertInstanceOf(Answer.Inference.class, answer).checksum());
        }
    }

    @Test
    void aBodyThatIsLongerThanEveryWindow() throws IOException {
        try (FakeInference server = new FakeInference(5000, _ -> FakeInference.ANSWER)) {
            Answer answer = infer(client(server), 1000, 10_000);
            assertEquals(
                    640_000, assertInstanceOf(Answer.Inference.class, answer).audioBytes());
        }
    }

    @Test
    void manyAtOnceOverOneConnection() throws Exception {
        try (FakeInference server = new FakeInference(WINDOW, _ -> FakeInference.ANSWER);
                ExecutorService executor = Executors.newVirtualThreadPerTaskExecutor()) {
            InferenceClient client = client(server);
            List<Future<Answer>> answers = IntStream.rangeClosed(1, 200)
                    .mapToObj(frames -> executor.submit(() -> infer(client, frames % 60 + 1, 10_000)))
                    .toList();
            for (int i = 0; i < answers.size(); i++) {
                Answer.Inference answer =
                        assertInstanceOf(Answer.Inference.class, answers.get(i).get());
                assertEquals(((i + 1) % 60 + 1) * 640L, answer.audioBytes(), "each has its own answer");
            }
            assertEquals(1, server.connections());
        }
    }

    @Test
    void statuses() throws IOException {
        List<Integer> codes = List.of(429, 503, 404, 204);
        try (FakeInference server = new FakeInference(WINDOW, n -> new Reaction.Status(codes.get(n - 1), ""))) {
            InferenceClient client = client(server);
            assertEquals(FailureKind.HTTP_429, kind(infer(client, 1, 5000)));
            assertEquals(FailureKind.HTTP_5XX, kind(infer(client, 1, 5000)));
            assertEquals(FailureKind.HTTP_4XX, kind(infer(client, 1, 5000)));
            assertEquals(FailureKind.PARSE_ERROR, kind(infer(client, 1, 5000)));
        }
    }

    @Test
    void aResetEndsItsOwnRequestOnly() throws IOException {
        try (FakeInference server = new FakeInference(WINDOW, first(new Reaction.Reset()))) {
            InferenceClient client = client(server);
            assertEquals(FailureKind.CONNECTION_RESET, kind(infer(client, 1, 5000)));
            assertInstanceOf(Answer.Inference.class, infer(client, 1, 5000));
            assertEquals(1, server.connections());
        }
    }

    @Test
    void aTimeoutResetsTheStream() throws Exception {
        try (FakeInference server = new FakeInference(WINDOW, first(new Reaction.Never()))) {
            InferenceClient client = client(server);
            assertEquals(FailureKind.TIMEOUT, kind(infer(client, 1, 100)));
            assertInstanceOf(Answer.Inference.class, infer(client, 1, 5000));
            while (server.resets().isEmpty()) {
                TimeUnit.MILLISECONDS.sleep(1);
            }
            assertEquals(List.of(1), server.resets());
        }
    }

    @Test
    void aLostConnectionIsMadeAnew() throws IOException {
        try (FakeInference server = new FakeInference(WINDOW, first(new Reaction.HangUp()))) {
            InferenceClient client = client(server);
            assertEquals(FailureKind.CONNECTION_RESET, kind(infer(client, 1, 5000)));
            assertInstanceOf(Answer.Inference.class, infer(client, 1, 5000));
            assertEquals(2, server.connections());
        }
    }

    @Test
    void aServerThatGoesAway() throws IOException {
        try (FakeInference server = new FakeInference(WINDOW, first(new Reaction.GoAway()))) {
            InferenceClient client = client(server);
            assertEquals(FailureKind.CONNECTION_RESET, kind(infer(client, 1, 5000)));
            assertInstanceOf(Answer.Inference.class, infer(client, 1, 5000));
        }
    }

    @Test
    void anAnswerOfAnyLengthIsNotRead() throws IOException {
        Reaction endless = new Reaction.Status(200, "x".repeat(16_000));
        try (FakeInference server = new FakeInference(WINDOW, _ -> endless)) {
            assertEquals(FailureKind.PARSE_ERROR, kind(infer(client(server), 1, 5000)));
        }
    }

    @Test
    void nobodyListens() throws IOException {
        URI url;
        try (ServerSocket closed = new ServerSocket(0)) {
            url = URI.create("http://127.0.0.1:" + closed.getLocalPort());
        }
        InferenceClient client = new InferenceClient(url, 1, 4);
        assertEquals(FailureKind.CONNECTION_RESET, kind(infer(client, 1, 5000)));
    }

    @Test
    void whoGivesUpWaitsNoLonger() throws Exception {
        try (FakeInference server = new FakeInference(WINDOW, _ -> new Reaction.Never())) {
            InferenceClient client = client(server);
            Batch batch = batch(1);
            boolean[] over = {false};
            Thread waiting = Thread.ofVirtual()
                    .start(() -> client.infer(batch, () -> over[0] ? Long.MIN_VALUE : Long.MAX_VALUE));
            TimeUnit.MILLISECONDS.sleep(50);
            over[0] = true;
            java.util.concurrent.locks.LockSupport.unpark(waiting);
            assertTrue(waiting.join(java.time.Duration.ofSeconds(5)));
        }
    }
}
