package plimsoll.stt;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.constraints.IntRange;

/** Whatever happens, in whatever order: each accepted frame is named exactly once, in order, and its audio is its own. */
class LedgerProperties {
    private static final int INTERVAL_MS = 100;

    /** A step of a history; each is followed by the tick that is due, if one is. */
    sealed interface Step {
        record Frames(int count) implements Step {}

        record Pause(int millis) implements Step {}

        record Answered() implements Step {}

        record Room(int messages) implements Step {}

        record Jobs(boolean free) implements Step {}
    }

    @Provide
    Arbitrary<List<Step>> histories() {
        Arbitrary<Step> step = Arbitraries.oneOf(
                Arbitraries.integers().between(1, 40).map(Step.Frames::new),
                Arbitraries.integers().between(1, 350).map(Step.Pause::new),
                Arbitraries.create(Step.Answered::new),
                Arbitraries.integers().between(-1, 3).map(Step.Room::new),
                Arbitraries.of(true, false).map(Step.Jobs::new));
        return step.list().ofMaxSize(120);
    }

    @Property(tries = 2000)
    void eachFrameIsNamedOnceAndInOrder(
            @ForAll("histories") List<Step> history,
            @ForAll OverflowPolicy policy,
            @ForAll @IntRange(min = 1, max = 60) int framesMax) {
        World world = new World(policy, framesMax);
        for (Step step : history) {
            world.step(step);
            if (world.refused) {
                break;
            }
        }
        world.settle();
    }

    /** A session with all that surrounds it, on a clock of its own. */
    private static final class World {
        private final Session session;
        private final List<Span> named = new ArrayList<>();
        private Span inFlight;
        private long now;
        private long accepted;
        private int room = 3;
        private boolean jobsFree = true;
        private boolean refused;

        World(OverflowPolicy policy, int framesMax) {
            session = new Session(
                    TestConfigs.of(
                            "FLUSH_INTERVAL_MS", Integer.toString(INTERVAL_MS),
                            "MAX_BUFFER_FRAMES", Integer.toString(framesMax),
                            "OVERFLOW_POLICY", policy.name().toLowerCase(Locale.ROOT)),
                    0);
        }

        private static long ms(long millis) {
            return TimeUnit.MILLISECONDS.toNanos(millis);
        }

        void step(Step step) {
            switch (step) {
                case Step.Frames(int count) -> frames(count);
                case Step.Pause(int millis) -> now += ms(millis);
                case Step.Answered() -> answer();
                case Step.Room(int messages) -> room = messages;
                case Step.Jobs(boolean free) -> jobsFree = free;
            }
            if (session.nextTickNanos() <= now) {
                tick();
            }
        }

        private void frames(int count) {
            for (int i = 0; i < count && !refused; i++) {
                byte[] frame = ByteBuffer.allocate(Session.FRAME_BYTES)
                        .putLong(accepted + 1)
                        .array();
                refused = session.offer(frame, now) == Session.Offer.REFUSED;
                accepted += refused ? 0 : 1;
            }
        }

        private void answer() {
            if (inFlight != null) {
                named.add(inFlight);
                inFlight = null;
                session.answered();
            }
        }

        private void tick() {
            assertEquals(0, session.nextTickNanos() % ms(INTERVAL_MS), "the schedule is absolute");
            Session.Tick tick = session.tick(now, room, () -> jobsFree);
            int messages = (tick.dropped().isPresent() ? 1 : 0) + (tick.batch().isPresent() ? 1 : 0);
            assertTrue(messages <= Math.max(0, room), "there is room for what is sent");
            tick.dropped().ifPresent(span -> {
                assertFalse(inFlight != null, "drops are named after what is in flight");
                named.add(span);
            });
            tick.batch().ifPresent(batch -> {
                assertFalse(inFlight != null, "one request at most");
                inFlight = batch.span();
                assertAudio(batch);
            });
            assertTrue(session.nextTickNanos() > now, "the next tick is ahead");
        }

        /** Every frame says its own number, and is where it should be. */
        private static void assertAudio(Session.Batch batch) {
            ByteBuffer pcm = ByteBuffer.wrap(batch.pcm());
            assertEquals(batch.span().frames() * Session.FRAME_BYTES, pcm.limit());
            for (int i = 0; i < batch.span().frames(); i++) {
                assertEquals(batch.span().oldestSeq() + i, pcm.getLong(i * Session.FRAME_BYTES));
            }
        }

        /** Lets all that is owed come, and closes the books. */
        void settle() {
            room = 3;
            jobsFree = true;
            for (int i = 0; i < 4; i++) {
                answer();
                now = Math.max(now, session.nextTickNanos());
                tick();
            }
            answer();
            long next = 1;
            for (Span span : named) {
                assertEquals(next, span.oldestSeq());
                next = span.newestSeq() + 1;
            }
            assertEquals(accepted + 1, next, "every accepted frame is named");
        }
    }
}
