package plimsoll.http.test;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static plimsoll.http.test.Tests.assertEquals;
import static plimsoll.http.test.Tests.assertTrue;

import java.util.HashMap;
import java.util.Map;
import plimsoll.http.Checksum;
import plimsoll.http.Config;
import plimsoll.http.Decimal;

/** Unit tests of what the servers share. */
public final class CommonTests {
    private CommonTests() {}

    public static void addTo(Tests tests) {
        tests.add("unit-decimal", CommonTests::decimal);
        tests.add("unit-checksum", CommonTests::checksum);
        tests.add("unit-config", CommonTests::config);
    }

    private static void decimal() {
        assertEquals(0L, Decimal.parse("0", 9));
        assertEquals(9L, Decimal.parse("9", 9));
        assertEquals(12L, Decimal.parse("/a/12", 3, 99));
        for (String bad :
                new String[] {"", "10", "00", "01", "+1", "-1", " 1", "1 ", "a", "\u0661", "9999999999999999999"}) {
            assertEquals(-1L, Decimal.parse(bad, 9));
        }
    }

    private static void checksum() {
        byte[] bytes = "123456789".getBytes(US_ASCII);
        for (int at = 0; at <= bytes.length; at++) {
            Checksum sum = new Checksum();
            sum.add(bytes, 0, at);
            sum.add(bytes, at, bytes.length - at);
            assertEquals("cbf43926 9", sum.toString());
        }
    }

    private static void config() throws Exception {
        assertEquals(new Config(3000, 1, 5000, 1 << 20), Config.read(name -> null));
        Map<String, String> variables = new HashMap<>();
        variables.put("PORT", "65535");
        variables.put("WORKER_THREADS", "8");
        variables.put("DRAIN_TIMEOUT_MS", "0");
        variables.put("MAX_BODY_BYTES", "7");
        assertEquals(new Config(65_535, 8, 0, 7), Config.read(variables::get));
        variables.put("WORKER_THREADS", "0\n1");
        try {
            throw new AssertionError("taken: " + Config.read(variables::get));
        } catch (Config.BadValue e) {
            assertTrue(
                    e.getMessage().contains("WORKER_THREADS") && !e.getMessage().contains("\n"), e.getMessage());
        }
    }
}
