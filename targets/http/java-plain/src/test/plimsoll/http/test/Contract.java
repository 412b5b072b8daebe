package plimsoll.http.test;

import java.util.Map;

/** All checks of the contract against one target. */
public final class Contract {
    private Contract() {}

    /** Starts the target, and adds the checks. {@code shortFlags} sets the limit for half a request to 2 s. */
    public static void addTo(Tests tests, String target, String shortFlags) throws Exception {
        ServerProcess server = ServerProcess.start(target, Map.of());
        RouteChecks.addTo(tests, server);
        FramingChecks.addTo(tests, server);
        LimitChecks.addTo(tests, server);
        tests.add("silent", () -> {
            Tests.assertEquals(1L, server.output().lines().count());
            server.terminate();
            Tests.assertEquals(0, server.exitCode(5000));
            server.close();
        });
        LifeChecks.addTo(tests, target, shortFlags);
    }
}
