package plimsoll.http;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class ConfigTest {
    @Test
    void defaultsAreTheContracts() throws Exception {
        assertEquals(new Config(3000, 1, Duration.ofSeconds(5), 1_048_576), Config.read(_ -> null));
    }

    @Test
    void variablesAreTaken() throws Exception {
        Map<String, String> variables =
                Map.of("PORT", "65535", "WORKER_THREADS", "4", "DRAIN_TIMEOUT_MS", "0", "MAX_BODY_BYTES", "10");
        assertEquals(new Config(65_535, 4, Duration.ZERO, 10), Config.read(variables::get));
    }

    @ParameterizedTest
    @CsvSource({
        "PORT,0",
        "PORT,65536",
        "PORT,-1",
        "PORT,+80",
        "PORT,80x",
        "PORT,''",
        "PORT,' 80'",
        "PORT,99999999999999999999",
        "PORT,٣٠٠٠",
        "WORKER_THREADS,0",
        "WORKER_THREADS,1.5",
        "DRAIN_TIMEOUT_MS,-5",
        "MAX_BODY_BYTES,1e6",
    })
    void badValuesAreNamed(String name, String value) {
        Exception e = assertThrows(Config.ConfigException.class, () -> Config.read(Map.of(name, value)::get));
        assertTrue(e.getMessage().contains(name), e.getMessage());
    }

    @Test
    void messageIsOneLine() {
        Exception e = assertThrows(Config.ConfigException.class, () -> Config.read(Map.of("PORT", "1\n2\r3")::get));
        assertFalse(e.getMessage().chars().anyMatch(c -> c == '\n' || c == '\r'), e.getMessage());
    }
}
