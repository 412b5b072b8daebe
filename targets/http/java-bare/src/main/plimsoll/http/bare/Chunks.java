package plimsoll.http.bare;

import plimsoll.http.Checksum;

/** Takes a chunked body apart (RFC 9112, section 7.1), as its bytes come. */
final class Chunks {
    /** All that is not the body itself: extensions and trailers. */
    private static final int MOST_OVERHEAD_BYTES = 16 << 10;

    private enum State {
        SIZE,
        BEFORE_EXTENSION,
        EXTENSION,
        SIZE_LF,
        DATA,
        DATA_CR,
        DATA_LF,
        TRAILER,
        FIELD,
        FIELD_LF,
        LAST_LF,
        DONE
    }

    private final Checksum sum;
    private final long mostBytes;
    private State state = State.SIZE;
    private int digits;
    private long size;
    private long total;
    private int overhead;
    private int status;

    /** {@code sum} may be null: then the body is only read over. */
    Chunks(Checksum sum, long mostBytes) {
        this.sum = sum;
        this.mostBytes = mostBytes;
    }

    boolean isDone() {
        return state == State.DONE;
    }

    /** The status to refuse the body with, or 0. */
    int status() {
        return status;
    }

    /** Returns how many bytes it took. It takes all, except what is behind the body or behind an error. */
    int take(byte[] bytes, int from, int to) {
        int at = from;
        while (at < to && state != State.DONE && status == 0) {
            if (state == State.DATA) {
                int count = (int) Math.min(size, to - at);
                if (sum != null) {
                    sum.add(bytes, at, count);
                }
                at += count;
                size -= count;
                state = size == 0 ? State.DATA_CR : State.DATA;
            } else {
                step(bytes[at]);
                at++;
            }
        }
        return at - from;
    }

    private void step(byte c) {
        switch (state) {
            case SIZE -> takeSize(c);
            case BEFORE_EXTENSION -> {
                count();
                if (c == ';') {
                    state = State.EXTENSION;
                } else if (!Ascii.isBlank(c)) {
                    status = 400;
                }
            }
            case EXTENSION -> takeText(c, State.SIZE_LF);
            case SIZE_LF -> expect(c, '\n', size == 0 ? State.TRAILER : State.DATA);
            case DATA_CR -> expect(c, '\r', State.DATA_LF);
            case DATA_LF -> {
                expect(c, '\n', State.SIZE);
                digits = 0;
            }
            case TRAILER -> {
                if (c == '\r') {
                    state = State.LAST_LF;
                } else {
                    count();
                    expectToken(c);
                }
            }
            case FIELD -> takeText(c, State.FIELD_LF);
            case FIELD_LF -> expect(c, '\n', State.TRAILER);
            case LAST_LF -> expect(c, '\n', State.DONE);
            case DATA, DONE -> throw new IllegalStateException("no framing in " + state);
        }
    }

    private void takeSize(byte c) {
        int digit = Ascii.hexDigit(c);
        if (digit >= 0) {
            digits++;
            size = size * 16 + digit;
            // Zeros could go on for ever.
            if (digits > 16) {
                status = 400;
            } else if (total + size > mostBytes) {
                status = 413;
            }
        } else if (digits == 0) {
            status = 400;
        } else if (c == '\r') {
            endSize(State.SIZE_LF);
        } else if (c == ';') {
            endSize(State.EXTENSION);
        } else if (Ascii.isBlank(c)) {
            endSize(State.BEFORE_EXTENSION);
        } else {
            status = 400;
        }
    }

    private void endSize(State next) {
        total += size;
        state = next;
    }

    private void takeText(byte c, State next) {
        if (c == '\r') {
            state = next;
        } else if (Ascii.isText(c)) {
            count();
        } else {
            status = 400;
        }
    }

    private void expect(byte c, char wanted, State next) {
        if (c == wanted) {
            state = next;
        } else {
            status = 400;
        }
    }

    private void expectToken(byte c) {
        if (!Ascii.isToken(c)) {
            status = 400;
        }
        state = State.FIELD;
    }

    private void count() {
        overhead++;
        if (overhead > MOST_OVERHEAD_BYTES) {
            status = 431;
        }
    }
}
