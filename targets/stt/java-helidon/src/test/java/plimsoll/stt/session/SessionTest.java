package plimsoll.stt.session;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Optional;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import plimsoll.stt.message.Answer;
import plimsoll.stt.message.Failure;
import plimsoll.stt.message.GatewayError;
import plimsoll.stt.message.GatewayMessage;
import plimsoll.stt.message.Partial;

/** The rules of a session under a simulated clock. */
class SessionTest {
    private static final Answer.Inference ANSWER = new Answer.Inference(1, 2, 3, 4, "now", 640);
    private static final Tick.Leave FREE = new Tick.Leave(0, () -> true);
    private static final byte[] FRAME = new byte[Session.FRAME_BYTES];

    private final AudioPool pool = new AudioPool(1 << 20);

    private static long ms(long millis) {
        return TimeUnit.MILLISECONDS.toNanos(millis);
    }

    private Session session(OverflowPolicy policy, int framesMax, long jitterMs) {
        Settings settings = new Settings(ms(1000), ms(10_000), ms(5000), framesMax, policy, 4, 4);
        return new Session(settings, pool, ms(jitterMs), 0);
    }

    private Session started(OverflowPolicy policy, int framesMax) throws Violation {
        Session session = session(policy, framesMax, 0);
        session.onText("{\"type\":\"start\"}", 0);
        return session;
    }

    private static void frames(Session session, int count, long atMs) throws Violation {
        for (int i = 0; i < count; i++) {
            session.onFrame(FRAME, ms(atMs));
        }
    }

    private static Tick.Flushed flush(Session session, long atMs) {
        Tick.Flushed flushed = assertInstanceOf(Tick.Flushed.class, session.tick(ms(atMs), FREE));
        flushed.batch().release();
        return flushed;
    }

    private static String named(GatewayMessage message) {
        String kind =
                switch (message) {
                    case Partial _ -> "partial";
                    case GatewayError error -> error.failure().kind().label();
                };
        return kind + " " + message.span().oldestSeq() + "-" + message.span().newestSeq();
    }

    @Test
    void aLateTickMovesNoOther() throws Violation {
        Session session = session(OverflowPolicy.DROP_OLDEST, 500, 300);
        session.onText("{\"type\":\"start\"}", ms(50));
        assertEquals(ms(1350), session.dueAtNanos());
        frames(session, 1, 100);
        assertInstanceOf(Tick.Nothing.class, session.tick(ms(1349), FREE));
        assertEquals(ms(900), flush(session, 2250).flight().flushLatenessNanos());
        session.onAnswer(ANSWER, ms(2300));
        assertEquals(ms(2350), session.dueAtNanos());
    }

    @Test
    void anEmptyBufferDoesNothing() throws Violation {
        Session session = started(OverflowPolicy.DROP_OLDEST, 500);
        assertInstanceOf(Tick.Nothing.class, session.tick(ms(1000), FREE));
        assertEquals(ms(2000), session.dueAtNanos());
    }

    @Test
    void oneRequestIsInFlight() throws Violation {
        Session session = started(OverflowPolicy.DROP_OLDEST, 500);
        frames(session, 50, 900);
        assertEquals(50, flush(session, 1000).batch().span().frames());
        frames(session, 50, 1900);
        Tick.Deferred deferred = assertInstanceOf(Tick.Deferred.class, session.tick(ms(2000), FREE));
        assertEquals(Deferral.INFLIGHT, deferred.reason());
        assertEquals("partial 1-50", named(session.onAnswer(ANSWER, ms(2500))));
        assertInstanceOf(Tick.Nothing.class, session.tick(ms(2600), FREE), "not when the answer comes");
        assertEquals("51", Long.toString(flush(session, 3000).batch().span().oldestSeq()));
    }

    @Test
    void ticksThatPassedInFlightAreCountedAndSkipped() throws Violation {
        Session session = started(OverflowPolicy.DROP_OLDEST, 500);
        frames(session, 1, 10);
        flush(session, 1000);
        // Nothing waits at 2000; from 2500 on something does.
        frames(session, 1, 2500);
        session.onAnswer(ANSWER, ms(4500));
        assertEquals(2, session.tally().deferred().get(Deferral.INFLIGHT));
        assertEquals(ms(5000), session.dueAtNanos());
    }

    @Test
    void aFullOutboxAndAFullGatewayDefer() throws Violation {
        Session session = started(OverflowPolicy.DROP_OLDEST, 500);
        frames(session, 1, 10);
        Tick outbox = session.tick(ms(1000), new Tick.Leave(4, () -> true));
        assertEquals(
                Deferral.OUTBOX, assertInstanceOf(Tick.Deferred.class, outbox).reason());
        Tick jobs = session.tick(ms(2000), new Tick.Leave(3, () -> false));
        assertEquals(Deferral.JOBS, assertInstanceOf(Tick.Deferred.class, jobs).reason());
        flush(session, 3000);
    }

    @Test
    void droppedOldestAreNamedBeforeTheBatch() throws Violation {
        Session session = started(OverflowPolicy.DROP_OLDEST, 20);
        frames(session, 50, 10);
        Tick.Flushed flushed = flush(session, 1000);
        assertEquals("overflow 1-30", named(flushed.errors().getFirst()));
        assertEquals("partial 31-50", named(session.onAnswer(ANSWER, ms(1100))));
        assertEquals(30, session.tally().framesDropped());
        assertEquals(50, session.tally().frames());
    }

    @Test
    void droppedNewestAreNamedAfterTheBatch() throws Violation {
        Session session = started(OverflowPolicy.DROP_NEWEST, 20);
        frames(session, 50, 10);
        assertTrue(flush(session, 1000).errors().isEmpty());
        assertEquals("partial 1-20", named(session.onAnswer(ANSWER, ms(1100))));
        Tick.Reported reported = assertInstanceOf(Tick.Reported.class, session.tick(ms(2000), FREE));
        assertEquals("overflow 21-50", named(reported.errors().getFirst()));
    }

    @Test
    void overflowCloses() throws Violation {
        Session session = started(OverflowPolicy.CLOSE, 20);
        frames(session, 20, 10);
        Violation violation = assertThrows(Violation.class, () -> frames(session, 1, 20));
        assertEquals(CloseReason.OVERFLOW, violation.reason());
    }

    @Test
    void memoryIsBoundedForAllTogether() throws Violation {
        AudioPool small = new AudioPool(2L * AudioChunk.BYTES);
        Settings settings = new Settings(ms(1000), ms(10_000), ms(5000), 500, OverflowPolicy.DROP_OLDEST, 4, 4);
        Session session = new Session(settings, small, 0, 0);
        session.onText("{\"type\":\"start\"}", 0);
        frames(session, 25, 10);
        Tick.Flushed first = assertInstanceOf(Tick.Flushed.class, session.tick(ms(1000), FREE));
        assertEquals(20, first.batch().span().frames());
        frames(session, 5, 1100);
        first.batch().release();
        session.onAnswer(ANSWER, ms(1200));
        frames(session, 5, 1300);
        Tick.Flushed second = assertInstanceOf(Tick.Flushed.class, session.tick(ms(2000), FREE));
        assertEquals("overflow 21-30", named(second.errors().getFirst()));
        assertEquals(31, second.batch().span().oldestSeq());
        second.batch().release();
        session.end();
        assertEquals(0, small.inUse());
    }

    @Test
    void theStartHasATimeout() {
        Session session = session(OverflowPolicy.DROP_OLDEST, 500, 0);
        assertTrue(session.overdue(ms(9999)).isEmpty());
        assertEquals(Optional.of(CloseReason.PROTOCOL), session.overdue(ms(10_000)));
    }

    @Test
    void onlyAudioFollowsTheStart() throws Violation {
        Session early = session(OverflowPolicy.DROP_OLDEST, 500, 0);
        assertThrows(Violation.class, () -> early.onFrame(FRAME, 0));
        Session late = started(OverflowPolicy.DROP_OLDEST, 500);
        assertThrows(Violation.class, () -> late.onText("{\"type\":\"start\"}", 0));
    }

    @Test
    void aDrainWaitsForWhatIsInFlightAndNotForEver() throws Violation {
        Session session = started(OverflowPolicy.DROP_OLDEST, 500);
        frames(session, 2, 10);
        flush(session, 1000);
        frames(session, 2, 1100);
        session.drain(ms(1500));
        assertFalse(session.isDrained());
        assertEquals(ms(1500), session.giveUpAtNanos());
        assertEquals("timeout 1-2", named(session.onAnswer(Failure.timeout(), ms(1500))));
        assertTrue(session.isDrained());
        assertInstanceOf(Tick.Nothing.class, session.tick(ms(2000), FREE));
    }

    @Test
    void anEndedSessionWaitsForNothing() throws Violation {
        Session session = started(OverflowPolicy.DROP_OLDEST, 500);
        frames(session, 2, 10);
        flush(session, 1000);
        session.end();
        assertEquals(Long.MIN_VALUE, session.giveUpAtNanos());
        assertEquals(Session.NEVER_NANOS, session.dueAtNanos());
        assertEquals(0, pool.inUse());
    }
}
