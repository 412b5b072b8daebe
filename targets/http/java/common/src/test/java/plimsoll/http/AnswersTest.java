package plimsoll.http;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.time.Duration;
import java.time.Instant;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import org.junit.jupiter.api.Test;

class AnswersTest {
    @Test
    void patternRepeatsItsDigits() {
        assertEquals(1_048_576, Pattern.bytes().length);
        assertEquals("0123456789abcdef0123", new String(Pattern.bytes(), 0, 20, US_ASCII));
        assertEquals('f', Pattern.bytes()[1_048_575]);
    }

    @Test
    void checksumIsThatOfZlib() {
        // The check value of CRC-32 in the catalogue of such codes.
        byte[] body = "123456789".getBytes(US_ASCII);
        Checksum whole = new Checksum();
        whole.update(body, 0, body.length);
        assertEquals("cbf43926 9", whole.toString());

        Checksum pieces = new Checksum();
        pieces.update(ByteBuffer.wrap(body, 0, 4));
        pieces.update(ByteBuffer.allocateDirect(5).put(body, 4, 5).flip());
        assertEquals("cbf43926 9", pieces.toString());
        assertEquals("00000000 0", new Checksum().toString());
    }

    @Test
    void itemSaysWhetherItIsEven() {
        assertEquals(new Item(7, "item 7", false), Item.of(7));
        assertEquals(new Item(0, "item 0", true), Item.of(0));
    }

    @Test
    void gaugeIsTheDifference() {
        Metrics metrics = new Metrics();
        metrics.opened();
        metrics.opened();
        metrics.closed();
        metrics.request();
        String text = metrics.text();
        assertTrue(text.contains("\nhttp_requests_total 1\n"), text);
        assertTrue(text.contains("\nhttp_connections_accepted_total 2\n"), text);
        assertTrue(text.contains("\nhttp_connections_open 1\n"), text);
    }

    @Test
    void dateIsNow() {
        String text = HttpDate.now();
        assertEquals("Sun, 06 Nov 1994 08:49:37 GMT".length(), text.length());
        Instant date =
                ZonedDateTime.parse(text, DateTimeFormatter.RFC_1123_DATE_TIME).toInstant();
        assertTrue(Duration.between(date, Instant.now()).abs().toSeconds() < 5, text);
    }
}
