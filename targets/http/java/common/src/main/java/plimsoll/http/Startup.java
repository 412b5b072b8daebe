package plimsoll.http;

import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;

/** The line that a server prints on start. */
public final class Startup {
    private Startup() {}

    /** Prints the versions of the runtime and of {@code libraries}, as one line of JSON. None of them needs escaping. */
    public static void print(String name, Config config, Map<String, String> libraries) {
        String versions = new TreeMap<>(libraries)
                .entrySet().stream()
                        .map(library -> "\"%s\":\"%s\"".formatted(library.getKey(), library.getValue()))
                        .collect(Collectors.joining(",", "{", "}"));
        System.out.println("""
                {"name":"%s","runtime":"%s %s","vm":"%s %s","libraries":%s,"port":%d,"worker_threads":%d}""".formatted(
                        name,
                        System.getProperty("java.vendor.version", "Java"),
                        System.getProperty("java.version"),
                        System.getProperty("java.vm.name"),
                        Runtime.version(),
                        versions,
                        config.port(),
                        config.workers()));
    }
}
