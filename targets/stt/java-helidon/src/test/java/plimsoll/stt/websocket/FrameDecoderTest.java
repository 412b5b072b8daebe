package plimsoll.stt.websocket;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.fasterxml.jackson.databind.JsonNode;
import io.helidon.common.buffers.BufferData;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.util.Arrays;
import java.util.List;
import java.util.OptionalInt;
import java.util.stream.Stream;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;
import net.jqwik.api.constraints.Size;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;
import plimsoll.stt.session.CloseReason;
import plimsoll.stt.session.Violation;
import plimsoll.stt.support.ClientFrames;
import plimsoll.stt.support.Synthetic;
import plimsoll.stt.support.Vectors;

class FrameDecoderTest {
    private final FrameDecoder decoder = new FrameDecoder();

    private Incoming next(byte[] bytes) throws Violation {
        return decoder.next(BufferData.create(bytes));
    }

    private void start() throws Violation {
        assertInstanceOf(Incoming.Text.class, next(ClientFrames.text("{\"type\":\"start\"}")));
        decoder.started();
    }

    private void assertRefused(CloseReason reason, byte[] bytes) {
        Violation violation = assertThrows(Violation.class, () -> next(bytes));
        assertEquals(reason, violation.reason());
    }

    static Stream<Arguments> frames() throws IOException {
        return Vectors.of("frames.json");
    }

    /** From the header alone, wherever the header tells. */
    @ParameterizedTest(name = "{0}")
    @MethodSource("frames")
    void vector(String id, JsonNode vector) throws Violation {
        start();
        int opcode = vector.get("opcode").asText().equals("text") ? 1 : 2;
        byte[] header = ClientFrames.header(0x80 | opcode, vector.get("length").asLong());
        if (vector.get("ok").asBoolean()) {
            assertNull(next(header), id);
            assertInstanceOf(Incoming.Frame.class, next(new byte[640]), id);
        } else {
            Violation violation = assertThrows(Violation.class, () -> next(header), id);
            assertEquals(vector.get("close").asInt(), violation.reason().code(), id);
        }
    }

    @Property(tries = 300)
    void howeverBytesAreCutTheMessagesAreTheSame(
            @ForAll @Size(min = 1, max = 5) List<@IntRange(min = 1, max = 640) Integer> fragments,
            @ForAll @Size(min = 1, max = 40) List<@IntRange(min = 1, max = 900) Integer> reads)
            throws Violation {
        FrameDecoder fresh = new FrameDecoder();
        assertNotNull(fresh.next(BufferData.create(ClientFrames.text("x"))));
        fresh.started();
        ByteArrayOutputStream sent = new ByteArrayOutputStream();
        for (int seq = 1; seq <= 3; seq++) {
            sent.writeBytes(ClientFrames.ping(new byte[] {(byte) seq}));
            sent.writeBytes(ClientFrames.fragmented(Synthetic.frame(7, seq), fragments));
        }
        byte[] bytes = sent.toByteArray();
        int at = 0;
        int messages = 0;
        for (int read = 0; at < bytes.length; read++) {
            int end = Math.min(bytes.length, at + reads.get(read % reads.size()));
            BufferData part = BufferData.create(Arrays.copyOfRange(bytes, at, end));
            for (Incoming incoming = fresh.next(part); incoming != null; incoming = fresh.next(part)) {
                int seq = messages / 2 + 1;
                if (messages % 2 == 0) {
                    assertArrayEquals(
                            new byte[] {(byte) seq},
                            assertInstanceOf(Incoming.Ping.class, incoming).payload());
                } else {
                    assertArrayEquals(
                            Synthetic.frame(7, seq),
                            assertInstanceOf(Incoming.Frame.class, incoming).bytes());
                }
                messages++;
            }
            at = end;
        }
        assertEquals(6, messages);
    }

    @Test
    void aPingBetweenFragmentsIsSeenAtOnce() throws Violation {
        start();
        byte[] audio = Synthetic.frame(0, 1);
        assertNull(next(ClientFrames.frame(0x02, Arrays.copyOf(audio, 200))));
        assertInstanceOf(Incoming.Ping.class, next(ClientFrames.ping(new byte[125])));
        Incoming whole = next(ClientFrames.frame(0x80, Arrays.copyOfRange(audio, 200, 640)));
        assertArrayEquals(audio, assertInstanceOf(Incoming.Frame.class, whole).bytes());
    }

    @ParameterizedTest
    @ValueSource(ints = {3, 4, 5, 6, 7, 11, 12, 13, 14, 15})
    void reservedOpcodes(int opcode) {
        assertRefused(CloseReason.PROTOCOL, ClientFrames.frame(0x80 | opcode, new byte[0]));
    }

    @ParameterizedTest
    @ValueSource(ints = {0xC2, 0xA2, 0x92})
    void reservedBits(int first) throws Violation {
        start();
        assertRefused(CloseReason.PROTOCOL, ClientFrames.header(first, 640));
    }

    @Test
    void protocolErrors() throws Violation {
        start();
        assertRefused(CloseReason.PROTOCOL, new byte[] {(byte) 0x82, 0x05});
    }

    @Test
    void controlFramesAreWholeAndShort() {
        assertRefused(CloseReason.PROTOCOL, ClientFrames.header(0x09, 4));
    }

    @Test
    void aLongControlFrame() {
        assertRefused(CloseReason.PROTOCOL, ClientFrames.header(0x89, 126));
    }

    @Test
    void aContinuationOfNothing() {
        assertRefused(CloseReason.PROTOCOL, ClientFrames.header(0x80, 640));
    }

    @Test
    void aMessageInsideAnother() throws Violation {
        start();
        assertNull(next(ClientFrames.frame(0x02, new byte[320])));
        assertRefused(CloseReason.PROTOCOL, ClientFrames.header(0x82, 640));
    }

    @Test
    void fragmentsOfAWrongSize() throws Violation {
        start();
        assertNull(next(ClientFrames.frame(0x02, new byte[320])));
        assertRefused(CloseReason.FRAME_SIZE, ClientFrames.header(0x80, 321));
    }

    @Test
    void aLengthOverSixtyThreeBits() {
        assertRefused(CloseReason.TOO_LARGE, ClientFrames.header(0x81, Long.MIN_VALUE));
    }

    @Test
    void audioBeforeTheStart() {
        assertRefused(CloseReason.PROTOCOL, ClientFrames.header(0x82, 640));
    }

    @Test
    void closes() throws Violation {
        assertEquals(new Incoming.Close(OptionalInt.of(4321)), next(ClientFrames.close(4321)));
        assertEquals(new Incoming.Close(OptionalInt.empty()), next(ClientFrames.frame(0x88, new byte[0])));
        assertRefused(CloseReason.PROTOCOL, ClientFrames.close(1005));
    }

    @Test
    void aTextIsUtf8() {
        assertRefused(CloseReason.PROTOCOL, ClientFrames.frame(0x81, new byte[] {(byte) 0xC3, 0x28}));
    }
}
