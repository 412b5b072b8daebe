package plimsoll.http.bare;

import plimsoll.http.Checksum;
import plimsoll.http.Routes;

/** Makes requests of a connection's bytes. It does no I/O and never waits. */
final class Parser {
    static final int MOST_HEAD_BYTES = 16 << 10;

    /** Where a connection is between two requests. */
    enum Place {
        BETWEEN,
        IN_HEAD,
        IN_BODY
    }

    private static final Item CONTINUE = new Item.Continue();

    private final Input input;
    private final long mostBodyBytes;
    /** How many bytes of the head, from its start, are known not to end it. */
    private int scanned;
    /** The request whose body is being read, or null. */
    private Head head;

    private Checksum sum;
    private Chunks chunks;
    private long bodyLeft;

    Parser(Input input, long mostBodyBytes) {
        this.input = input;
        this.mostBodyBytes = mostBodyBytes;
    }

    Place place() {
        if (head != null) {
            return Place.IN_BODY;
        }
        return input.isEmpty() ? Place.BETWEEN : Place.IN_HEAD;
    }

    /** The next item, or null if it has not come in full. After a refusal there is no next. */
    Item next() {
        if (head == null) {
            int length = findHead();
            if (length <= 0) {
                return length == 0 ? null : new Item.Refusal(-length);
            }
            Head found = new Head();
            int status = found.parse(input.bytes(), input.start(), input.start() + length);
            input.consume(length);
            scanned = 0;
            if (status == 0 && found.contentLength() > mostBodyBytes) {
                status = 413;
            }
            if (status != 0) {
                return new Item.Refusal(status);
            }
            beginBody(found);
            if (found.expectsContinue() && input.isEmpty()) {
                return CONTINUE;
            }
        }
        return readBody();
    }

    /** The length of the head that begins the input; 0 if its end has not come; a negative status to refuse it with. */
    private int findHead() {
        byte[] bytes = input.bytes();
        if (scanned < 2) {
            skipEmptyLines(bytes);
            scanned = 0;
        }
        int start = input.start();
        int end = Math.min(input.end(), start + MOST_HEAD_BYTES);
        for (int at = start + scanned; at < end; at++) {
            if (bytes[at] == '\n') {
                if (at == start || bytes[at - 1] != '\r') {
                    return -400;
                }
                if (at >= start + 3 && bytes[at - 2] == '\n') {
                    return at + 1 - start;
                }
            }
        }
        scanned = end - start;
        return scanned == MOST_HEAD_BYTES ? -431 : 0;
    }

    /** Some clients send one behind a body (RFC 9112, section 2.2). */
    private void skipEmptyLines(byte[] bytes) {
        while (input.end() - input.start() >= 2 && bytes[input.start()] == '\r' && bytes[input.start() + 1] == '\n') {
            input.consume(2);
        }
    }

    private void beginBody(Head found) {
        head = found;
        sum = Routes.takesBody(found.path()) ? new Checksum() : null;
        chunks = found.isChunked() ? new Chunks(sum, mostBodyBytes) : null;
        bodyLeft = found.contentLength();
    }

    private Item readBody() {
        if (chunks != null) {
            input.consume(chunks.take(input.bytes(), input.start(), input.end()));
            if (chunks.status() != 0) {
                return new Item.Refusal(chunks.status());
            }
            return chunks.isDone() ? endRequest() : null;
        }
        int count = (int) Math.min(bodyLeft, input.end() - input.start());
        if (count > 0) {
            if (sum != null) {
                sum.add(input.bytes(), input.start(), count);
            }
            input.consume(count);
            bodyLeft -= count;
        }
        return bodyLeft == 0 ? endRequest() : null;
    }

    private Item endRequest() {
        Item request = new Item.Request(head.method(), head.path(), sum, head.isLast(), head.saysKeepAlive());
        head = null;
        sum = null;
        chunks = null;
        return request;
    }
}
