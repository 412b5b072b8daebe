package plimsoll.stt;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Optional;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** The rules of a session under a simulated clock. */
class SessionTest {
    private static final int ROOM = 4;
    private static final byte[] FRAME = new byte[Session.FRAME_BYTES];

    private static long ms(long millis) {
        return TimeUnit.MILLISECONDS.toNanos(millis);
    }

    private static Session session(String policy, int framesMax) {
        return new Session(
                TestConfigs.of("OVERFLOW_POLICY", policy, "MAX_BUFFER_FRAMES", Integer.toString(framesMax)), 0);
    }

    private static void frames(Session session, int count, long atMs) {
        for (int i = 0; i < count; i++) {
            session.offer(FRAME, ms(atMs));
        }
    }

    private static Session.Tick tick(Session session, long atMs) {
        return session.tick(ms(atMs), ROOM, () -> true);
    }

    private static void assertSpan(long oldest, long newest, Optional<Span> span) {
        assertEquals(oldest, span.orElseThrow().oldestSeq());
        assertEquals(newest, span.orElseThrow().newestSeq());
    }

    private static void assertBatch(long oldest, long newest, Session.Tick tick) {
        assertSpan(oldest, newest, tick.batch().map(Session.Batch::span));
        assertEquals(
                (newest - oldest + 1) * Session.FRAME_BYTES,
                tick.batch().orElseThrow().pcm().length);
    }

    @Test
    void aLateTickMovesNoOther() {
        Session session = new Session(TestConfigs.of(), ms(350));
        assertEquals(ms(1350), session.nextTickNanos());
        frames(session, 1, 100);
        // Two ticks are overdue: one flush takes all.
        assertEquals(ms(1900), tick(session, 3250).batch().orElseThrow().latenessNanos());
        assertEquals(ms(3350), session.nextTickNanos());
    }

    @Test
    void anEmptyBufferDoesNothing() {
        Session session = session("drop_oldest", 500);
        assertEquals(Optional.empty(), tick(session, 1000).batch());
        frames(session, 1, 1500);
        tick(session, 2000);
        assertEquals(Optional.empty(), tick(session, 3000).deferred(), "not even while a request is in flight");
    }

    @Test
    void oneRequestIsInFlight() {
        Session session = session("drop_oldest", 500);
        frames(session, 50, 900);
        assertBatch(1, 50, tick(session, 1000));
        frames(session, 50, 1900);
        assertEquals(Optional.of(Deferral.INFLIGHT), tick(session, 2000).deferred());
        session.answered();
        assertBatch(51, 100, tick(session, 3000));
    }

    @Test
    void aFullOutboxAndAFullGatewayDefer() {
        Session session = session("drop_oldest", 500);
        frames(session, 1, 10);
        assertEquals(
                Optional.of(Deferral.OUTBOX),
                session.tick(ms(1000), 0, () -> true).deferred());
        assertEquals(
                Optional.of(Deferral.JOBS),
                session.tick(ms(2000), 1, () -> false).deferred());
        assertBatch(1, 1, tick(session, 3000));
    }

    @Test
    void droppedOldestAreNamedBeforeTheBatch() {
        Session session = session("drop_oldest", 20);
        frames(session, 50, 10);
        Session.Tick tick = tick(session, 1000);
        assertSpan(1, 30, tick.dropped());
        assertBatch(31, 50, tick);
    }

    @Test
    void droppedNewestAreNamedAfterTheBatch() {
        Session session = session("drop_newest", 20);
        frames(session, 50, 10);
        Session.Tick first = tick(session, 1000);
        assertEquals(Optional.empty(), first.dropped());
        assertBatch(1, 20, first);
        assertEquals(Optional.empty(), tick(session, 2000).dropped(), "the answer comes first");
        session.answered();
        assertSpan(21, 50, tick(session, 3000).dropped());
    }

    @Test
    void overflowCloses() {
        Session session = session("close", 20);
        frames(session, 20, 10);
        assertEquals(Session.Offer.REFUSED, session.offer(FRAME, ms(20)));
    }

    @Test
    void aStoppedSessionOwesWhatIsInFlight() {
        Session session = session("drop_oldest", 500);
        frames(session, 2, 10);
        tick(session, 1000);
        frames(session, 2, 1100);
        session.stop();
        assertFalse(session.isDrained());
        assertEquals(Optional.empty(), tick(session, 2000).deferred());
        session.answered();
        assertTrue(session.isDrained());
        assertEquals(Optional.empty(), tick(session, 3000).batch());
    }
}
