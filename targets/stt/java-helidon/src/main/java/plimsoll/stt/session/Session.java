package plimsoll.stt.session;

import java.util.List;
import java.util.Optional;
import plimsoll.stt.message.Answer;
import plimsoll.stt.message.Failure;
import plimsoll.stt.message.GatewayError;
import plimsoll.stt.message.GatewayMessage;
import plimsoll.stt.message.Partial;
import plimsoll.stt.message.StartMessage;

/**
 * The rules of one session without I/O: frames, times and answers go in, batches and messages come out. It has no clock, no
 * socket and no thread of its own; whoever has more than one thread holds a lock around it.
 */
public final class Session {
    /** Bytes of one frame: 20 ms of 16 kHz, mono, 16-bit PCM. */
    public static final int FRAME_BYTES = 640;

    public static final long NEVER_NANOS = Long.MAX_VALUE;

    private sealed interface Phase {
        record AwaitingStart(long untilNanos) implements Phase {}

        record Streaming(Schedule schedule) implements Phase {}

        /** No more flushes and no more frames; only what is in flight is still owed, and that not for ever. */
        record Draining(long untilNanos) implements Phase {}

        record Ended() implements Phase {}
    }

    private final Settings settings;
    private final long jitterNanos;
    private final AudioBuffer audio;
    private Phase phase;
    private Slot slot = Slot.IDLE;
    private final Tally tally = new Tally();

    /** A session that was opened at {@code nowNanos}; {@code jitterNanos} is its share of the phase jitter. */
    public Session(Settings settings, AudioPool pool, long jitterNanos, long nowNanos) {
        this.settings = settings;
        this.jitterNanos = jitterNanos;
        this.audio = new AudioBuffer(settings.overflowPolicy(), settings.bufferFramesMax(), pool);
        this.phase = new Phase.AwaitingStart(nowNanos + settings.startTimeoutNanos());
    }

    /** Whether the start message is still awaited. A draining session takes what comes and does nothing with it. */
    public boolean awaitsStart() {
        return phase instanceof Phase.AwaitingStart;
    }

    public boolean hasEnded() {
        return phase instanceof Phase.Ended;
    }

    /** A whole text message. */
    public void onText(String text, long nowNanos) throws Violation {
        switch (phase) {
            case Phase.AwaitingStart _ -> {
                if (!StartMessage.isStart(text)) {
                    throw new Violation(CloseReason.PROTOCOL, "not a start message");
                }
                phase = new Phase.Streaming(new Schedule(nowNanos + jitterNanos, settings.flushIntervalNanos()));
            }
            case Phase.Streaming _ -> throw new Violation(CloseReason.PROTOCOL, "a text message after the start");
            case Phase.Draining _, Phase.Ended _ -> {}
        }
    }

    /** A whole binary message of the right size. Keeps a copy of {@code frame}. */
    public void onFrame(byte[] frame, long nowNanos) throws Violation {
        switch (phase) {
            case Phase.AwaitingStart _ -> throw new Violation(CloseReason.PROTOCOL, "audio before the start");
            case Phase.Streaming _ -> accept(frame, nowNanos);
            case Phase.Draining _, Phase.Ended _ -> {}
        }
    }

    private void accept(byte[] frame, long nowNanos) throws Violation {
        if (!audio.push(frame, nowNanos)) {
            throw new Violation(CloseReason.OVERFLOW, "the input buffer is full");
        }
        tally.frame();
    }

    /** When something is due by the clock: the end of a wait, or a tick. {@link #NEVER_NANOS} when the session has ended. */
    public long dueAtNanos() {
        return switch (phase) {
            case Phase.AwaitingStart awaiting -> awaiting.untilNanos();
            case Phase.Streaming streaming -> streaming.schedule().nextNanos();
            case Phase.Draining draining -> draining.untilNanos();
            case Phase.Ended _ -> NEVER_NANOS;
        };
    }

    /** The close that the clock asks for, if it does. */
    public Optional<CloseReason> overdue(long nowNanos) {
        return switch (phase) {
            case Phase.AwaitingStart(long untilNanos) when untilNanos <= nowNanos -> Optional.of(CloseReason.PROTOCOL);
            case Phase.Draining(long untilNanos) when untilNanos <= nowNanos -> Optional.of(CloseReason.GOING_AWAY);
            default -> Optional.empty();
        };
    }

    /** Until when the request in flight is worth waiting for, as things stand now. Long past when it no longer is. */
    public long giveUpAtNanos() {
        if (!(slot instanceof Slot.Busy(Flight flight))) {
            return Long.MIN_VALUE;
        }
        return switch (phase) {
            case Phase.Ended _ -> Long.MIN_VALUE;
            case Phase.Draining(long untilNanos) -> Math.min(untilNanos, flight.giveUpAtNanos());
            case Phase.AwaitingStart _, Phase.Streaming _ -> flight.giveUpAtNanos();
        };
    }

    /**
     * A tick, if one is due. It names the dropped frames and makes one batch of the whole buffer, unless something is in the
     * way. A job is taken from {@code leave} only for a batch; who gets the batch gives the job back.
     */
    public Tick tick(long nowNanos, Tick.Leave leave) {
        if (!(phase instanceof Phase.Streaming(Schedule schedule)) || nowNanos < schedule.nextNanos()) {
            return new Tick.Nothing();
        }
        long latenessNanos = nowNanos - schedule.nextNanos();
        schedule.advancePast(nowNanos);
        if (audio.waitingSinceNanos().isEmpty()) {
            return new Tick.Nothing();
        }
        return switch (slot) {
            case Slot.Busy _ -> deferred(Deferral.INFLIGHT, List.of());
            case Slot.Idle idle
            when leave.unsentMessages() < settings.outboxMessagesMax() -> flush(idle, nowNanos, latenessNanos, leave);
            case Slot.Idle _ -> deferred(Deferral.OUTBOX, List.of());
        };
    }

    private Tick flush(Slot.Idle idle, long nowNanos, long latenessNanos, Tick.Leave leave) {
        // Older than the buffer and newer than the last batch, so this is their place in the order.
        List<GatewayError> errors = audio
                .takeDropped()
                .map(span -> error(
                        span, Failure.overflow(span.frames()), nowNanos, latenessNanos, GatewayError.NO_INFERENCE))
                .stream()
                .toList();
        if (audio.frames() == 0) {
            return new Tick.Reported(errors);
        }
        if (!leave.takeJob().getAsBoolean()) {
            return deferred(Deferral.JOBS, errors);
        }
        Batch batch = audio.take().orElseThrow();
        Flight flight = new Flight(batch.span(), nowNanos, nowNanos + settings.inferenceTimeoutNanos(), latenessNanos);
        slot = idle.begin(flight);
        return new Tick.Flushed(errors, batch, flight);
    }

    private Tick deferred(Deferral reason, List<GatewayError> errors) {
        tally.deferred(reason);
        return new Tick.Deferred(reason, errors);
    }

    /** The request in flight has ended; the message that names its frames. */
    public GatewayMessage onAnswer(Answer answer, long nowNanos) {
        if (!(slot instanceof Slot.Busy busy)) {
            throw new IllegalStateException("nothing is in flight");
        }
        slot = busy.settle();
        countTicksInFlight(nowNanos);
        Flight flight = busy.flight();
        return switch (answer) {
            case Answer.Inference inference -> {
                tally.partial();
                yield new Partial(flight.span(), inference, settings.cpuPasses(), flight.flushLatenessNanos());
            }
            case Failure failure ->
                error(flight.span(), failure, nowNanos, flight.flushLatenessNanos(), nowNanos - flight.sentAtNanos());
        };
    }

    /** The thread that ticks was waiting for the answer. The ticks that passed meanwhile did nothing, and are counted. */
    private void countTicksInFlight(long nowNanos) {
        if (phase instanceof Phase.Streaming(Schedule schedule)) {
            while (schedule.nextNanos() <= nowNanos) {
                long tickNanos = schedule.nextNanos();
                if (audio.waitingSinceNanos()
                        .filter(since -> since <= tickNanos)
                        .isPresent()) {
                    tally.deferred(Deferral.INFLIGHT);
                }
                schedule.advance();
            }
        }
    }

    private GatewayError error(Span span, Failure failure, long nowNanos, long latenessNanos, long elapsedNanos) {
        tally.failed(failure.kind());
        // Written only while the slot is empty, so that it follows everything that is older: hence 0 in flight.
        return new GatewayError(failure, span, nowNanos, latenessNanos, elapsedNanos, 0, audio.frames());
    }

    /** From now on only the request in flight is still answered, if that comes before {@code untilNanos}. */
    public void drain(long untilNanos) {
        if (!hasEnded()) {
            phase = new Phase.Draining(untilNanos);
            audio.clear();
        }
    }

    /** Whether a draining session owes nothing any more. */
    public boolean isDrained() {
        return phase instanceof Phase.Draining && slot instanceof Slot.Idle;
    }

    /** The session is over; what waits is forgotten. */
    public void end() {
        phase = new Phase.Ended();
        audio.clear();
    }

    /** The counts since somebody last cleared them. */
    public Tally tally() {
        tally.dropped(audio.takeDroppedCount());
        return tally;
    }
}
