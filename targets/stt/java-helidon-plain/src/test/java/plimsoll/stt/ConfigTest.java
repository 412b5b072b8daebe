package plimsoll.stt;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.URI;
import java.time.Duration;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class ConfigTest {
    @Test
    void defaultsAreTheContracts() throws ConfigException {
        Config config = Config.read(_ -> null);
        assertEquals(3000, config.port());
        assertEquals(URI.create("http://127.0.0.1:9000"), config.inferenceUrl());
        assertEquals(Duration.ofSeconds(5), config.inferenceTimeout());
        assertEquals(Duration.ofSeconds(1), config.flushInterval());
        assertEquals(Duration.ofSeconds(1), config.flushPhaseJitter());
        assertEquals(4, config.cpuPasses());
        assertEquals(0, config.maxSessions());
        assertEquals(500, config.maxBufferFrames());
        assertEquals(OverflowPolicy.DROP_OLDEST, config.overflowPolicy());
        assertEquals(0, config.maxInflightJobs());
        assertEquals(4, config.outboxMessages());
        assertEquals(Duration.ofSeconds(10), config.startTimeout());
        assertEquals(Duration.ofSeconds(5), config.drainTimeout());
        assertEquals("", config.authToken());
    }

    @Test
    void connectionsAreCountedForEachWorker() throws ConfigException {
        assertEquals(0, Config.read(Map.of("WORKER_THREADS", "3")::get).inferenceConnections());
        Map<String, String> two = Map.of("WORKER_THREADS", "3", "INFERENCE_HTTP_CLIENTS", "2");
        assertEquals(6, Config.read(two::get).inferenceConnections());
    }

    @ParameterizedTest
    @CsvSource({
        "PORT,0",
        "PORT,65536",
        "PORT,+80",
        "WORKER_THREADS,0",
        "WORKER_THREADS,two",
        "INFERENCE_URL,127.0.0.1:9000",
        "INFERENCE_URL,https://example.org",
        "INFERENCE_URL,''",
        "INFERENCE_HTTP_CLIENTS,-1",
        "INFERENCE_TIMEOUT_MS,-1",
        "FLUSH_INTERVAL_MS,0",
        "FLUSH_PHASE_JITTER_MS,1.5",
        "CPU_PASSES,4294967296",
        "MAX_SESSIONS,''",
        "MAX_SESSIONS,٣",
        "MAX_BUFFER_FRAMES,0",
        "OVERFLOW_POLICY,'x\ny'",
        "OVERFLOW_POLICY,Drop_Oldest",
        "MAX_INFLIGHT_JOBS,all",
        "OUTBOX_MESSAGES,0",
        "START_TIMEOUT_MS,0",
        "DRAIN_TIMEOUT_MS,99999999999999999999"
    })
    void badValuesAreNamedInOneLine(String name, String value) {
        ConfigException bad = assertThrows(ConfigException.class, () -> Config.read(Map.of(name, value)::get));
        assertTrue(bad.getMessage().startsWith(name + "="), bad.getMessage());
        assertFalse(bad.getMessage().contains("\n"), bad.getMessage());
    }
}
