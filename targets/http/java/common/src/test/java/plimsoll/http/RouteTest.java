package plimsoll.http;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class RouteTest {
    @Test
    void knownPaths() {
        assertEquals(Route.ROOT, Route.of("GET", "/"));
        assertEquals(Route.ROOT, Route.of("HEAD", "/"));
        assertEquals(Route.SUM, Route.of("POST", "/sum"));
        assertEquals(Route.HEALTH, Route.of("GET", "/healthz"));
        assertEquals(Route.COUNTERS, Route.of("GET", "/metrics"));
        assertEquals(new Route.Bytes(1), Route.of("GET", "/bytes/1"));
        assertEquals(new Route.Bytes(1_048_576), Route.of("GET", "/bytes/1048576"));
        assertEquals(new Route.Json(0), Route.of("GET", "/json/0"));
        assertEquals(new Route.Json(9_007_199_254_740_991L), Route.of("GET", "/json/9007199254740991"));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "/nothing",
                "/bytes",
                "/bytes/",
                "/bytes/0",
                "/bytes/01",
                "/bytes/+1",
                "/bytes/-1",
                "/bytes/1/",
                "/bytes/1048577",
                "/json/",
                "/json/00",
                "/json/-0",
                "/json/9007199254740992",
                "/json/1.0",
                "/Sum",
                "//",
            })
    void unknownPaths(String path) {
        assertEquals(Route.NOT_FOUND, Route.of("GET", path));
    }

    @Test
    void wrongMethods() {
        assertInstanceOf(Route.NotAllowed.class, Route.of("GET", "/sum"));
        assertInstanceOf(Route.NotAllowed.class, Route.of("POST", "/"));
        assertInstanceOf(Route.NotAllowed.class, Route.of("get", "/"));
        assertInstanceOf(Route.NotAllowed.class, Route.of("DELETE", "/bytes/1"));
    }
}
