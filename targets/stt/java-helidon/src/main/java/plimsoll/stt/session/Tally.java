package plimsoll.stt.session;

import java.util.EnumMap;
import java.util.Map;
import plimsoll.stt.message.FailureKind;

/** What a session counted since it was last folded into the metrics, so that a frame touches no memory that sessions share. */
public final class Tally {
    private long frames;
    private long framesDropped;
    private long partials;
    private final EnumMap<FailureKind, Long> errors = new EnumMap<>(FailureKind.class);
    private final EnumMap<Deferral, Long> deferred = new EnumMap<>(Deferral.class);

    void frame() {
        frames++;
    }

    void dropped(long count) {
        framesDropped += count;
    }

    void partial() {
        partials++;
    }

    void failed(FailureKind kind) {
        errors.merge(kind, 1L, Long::sum);
    }

    void deferred(Deferral reason) {
        deferred.merge(reason, 1L, Long::sum);
    }

    public long frames() {
        return frames;
    }

    public long framesDropped() {
        return framesDropped;
    }

    public long partials() {
        return partials;
    }

    public Map<FailureKind, Long> errors() {
        return errors;
    }

    public Map<Deferral, Long> deferred() {
        return deferred;
    }

    /** Begins to count anew. */
    public void clear() {
        frames = 0;
        framesDropped = 0;
        partials = 0;
        errors.clear();
        deferred.clear();
    }
}
