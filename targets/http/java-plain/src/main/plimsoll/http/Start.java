package plimsoll.http;

/** The line that tells what has started. */
public final class Start {
    private Start() {}

    /** Prints one JSON object on one line. {@code server} and {@code mode} need no escaping. */
    public static void print(String server, String mode, Config config) {
        System.out.println("{\"runtime\":\"" + System.getProperty("java.vm.name") + " " + Runtime.version()
                + "\",\"libraries\":{},\"server\":\"" + server + "\",\"mode\":\"" + mode
                + "\",\"port\":" + config.port() + ",\"workers\":" + config.workers() + "}");
        System.out.flush();
    }
}
