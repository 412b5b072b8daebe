package plimsoll.stt.session;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.constraints.IntRange;
import plimsoll.stt.message.Answer;
import plimsoll.stt.message.Failure;
import plimsoll.stt.message.GatewayMessage;

/** Whatever happens, in whatever order: each accepted frame is named exactly once, in order, and its audio is its own. */
class LedgerProperties {
    private static final int INTERVAL_MS = 100;

    /** A step of a history; each is followed by the ticks that are due. */
    sealed interface Step {
        record Frames(int count) implements Step {}

        record Pause(int millis) implements Step {}

        record Answered(boolean well) implements Step {}

        record Outbox(int unsent) implements Step {}

        record Jobs(boolean free) implements Step {}
    }

    @Provide
    Arbitrary<List<Step>> histories() {
        Arbitrary<Step> step = Arbitraries.oneOf(
                Arbitraries.integers().between(1, 40).map(Step.Frames::new),
                Arbitraries.integers().between(1, 350).map(Step.Pause::new),
                Arbitraries.of(true, false).map(Step.Answered::new),
                Arbitraries.integers().between(0, 3).map(Step.Outbox::new),
                Arbitraries.of(true, false).map(Step.Jobs::new));
        return step.list().ofMaxSize(120);
    }

    @Property(tries = 2000)
    void eachFrameIsNamedOnceAndInOrder(
            @ForAll("histories") List<Step> history,
            @ForAll OverflowPolicy policy,
            @ForAll @IntRange(min = 1, max = 60) int framesMax,
            @ForAll @IntRange(min = 1, max = 6) int chunksMax)
            throws Violation {
        World world = new World(policy, framesMax, chunksMax);
        for (Step step : history) {
            if (!world.step(step)) {
                break;
            }
        }
        world.settle();
    }

    /** A session with all that surrounds it, on a clock of its own. */
    private static final class World {
        private final AudioPool pool;
        private final Session session;
        private final boolean[] jobsFree = {true};
        private final List<GatewayMessage> named = new ArrayList<>();
        private long now;
        private long accepted;
        private int unsent;
        private boolean inFlight;
        private boolean refused;

        World(OverflowPolicy policy, int framesMax, int chunksMax) throws Violation {
            pool = new AudioPool((long) chunksMax * AudioChunk.BYTES);
            Settings settings = new Settings(ms(INTERVAL_MS), ms(1000), ms(1_000_000), framesMax, policy, 2, 4);
            session = new Session(settings, pool, 0, 0);
            session.onText("{\"type\":\"start\"}", 0);
        }

        private static long ms(long millis) {
            return TimeUnit.MILLISECONDS.toNanos(millis);
        }

        boolean step(Step step) {
            switch (step) {
                case Step.Frames(int count) -> frames(count);
                case Step.Pause(int millis) -> now += ms(millis);
                case Step.Answered(boolean well) -> answer(well);
                case Step.Outbox(int count) -> unsent = count;
                case Step.Jobs(boolean free) -> jobsFree[0] = free;
            }
            tick();
            return !refused;
        }

        private void frames(int count) {
            for (int i = 0; i < count && !refused; i++) {
                byte[] frame = ByteBuffer.allocate(Session.FRAME_BYTES)
                        .putLong(accepted + 1)
                        .array();
                try {
                    session.onFrame(frame, now);
                    accepted++;
                } catch (Violation violation) {
                    assertEquals(CloseReason.OVERFLOW, violation.reason());
                    refused = true;
                }
            }
        }

        private void answer(boolean well) {
            if (inFlight) {
                inFlight = false;
                named.add(session.onAnswer(well ? new Answer.Inference(0, 0, 0, 0, "", 0) : Failure.timeout(), now));
            }
        }

        private void tick() {
            long dueNanos = session.dueAtNanos();
            assertEquals(0, dueNanos % ms(INTERVAL_MS), "the schedule is absolute");
            switch (session.tick(now, new Tick.Leave(unsent, () -> jobsFree[0]))) {
                case Tick.Nothing() -> {}
                case Tick.Deferred deferred -> named.addAll(deferred.errors());
                case Tick.Reported reported -> named.addAll(reported.errors());
                case Tick.Flushed flushed -> {
                    assertTrue(!inFlight, "one request at most");
                    inFlight = true;
                    named.addAll(flushed.errors());
                    assertAudio(flushed.batch());
                    flushed.batch().release();
                }
            }
            assertTrue(session.dueAtNanos() > now, "the next tick is ahead");
        }

        /** Every frame says its own number, and is where it should be. */
        private static void assertAudio(Batch batch) {
            ByteBuffer pcm = ByteBuffer.allocate(batch.bytes());
            batch.pcm().forEach(pcm::put);
            for (int i = 0; i < batch.span().frames(); i++) {
                assertEquals(batch.span().oldestSeq() + i, pcm.getLong(i * Session.FRAME_BYTES));
            }
        }

        /** Lets all that is owed come, and closes the books. */
        void settle() {
            unsent = 0;
            jobsFree[0] = true;
            for (int i = 0; i < 4; i++) {
                answer(true);
                now += ms(INTERVAL_MS);
                tick();
            }
            answer(true);
            long next = 1;
            for (GatewayMessage message : named) {
                assertEquals(next, message.span().oldestSeq());
                next = message.span().newestSeq() + 1;
            }
            assertEquals(accepted + 1, next, "every accepted frame is named");
            session.end();
            assertEquals(0, pool.inUse(), "all memory is back");
        }
    }
}
