package plimsoll.stt.session;

/**
 * The one place for a request. {@link Idle#begin} is the only way to fill it, and {@link Busy} has no such method: two
 * requests at a time cannot be written down.
 */
sealed interface Slot {
    Idle IDLE = new Idle();

    record Idle() implements Slot {
        Busy begin(Flight flight) {
            return new Busy(flight);
        }
    }

    record Busy(Flight flight) implements Slot {
        Idle settle() {
            return IDLE;
        }
    }
}
