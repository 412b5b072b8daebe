package plimsoll.stt;

/** The line that a gateway prints on start. */
final class Versions {
    private Versions() {}

    static String startLine(Config config) {
        return """
                {"name":"java-helidon","runtime":"%s %s","vm":"%s %s","libraries":{"helidon":"%s","jackson-core":"%s"},\
                "port":%d,"worker_threads":%d}""".formatted(
                        System.getProperty("java.vendor.version", ""),
                        System.getProperty("java.version"),
                        System.getProperty("java.vm.name"),
                        Runtime.version(),
                        io.helidon.common.Version.VERSION,
                        com.fasterxml.jackson.core.json.PackageVersion.VERSION,
                        config.port(),
                        config.workerThreads());
    }
}
