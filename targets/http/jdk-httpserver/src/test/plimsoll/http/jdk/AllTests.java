package plimsoll.http.jdk;

import java.util.Set;
import plimsoll.http.test.CommonTests;
import plimsoll.http.test.Contract;
import plimsoll.http.test.Tests;

/** One of the two targets as a process. */
public final class AllTests {
    /** What the library does, with no way round it: see the README. */
    private static final Set<String> DEVIATIONS = Set.of(
            "chunked-trailer",
            "framing-bare-lf",
            "framing-folded",
            "framing-nul-in-value",
            "metrics-connections",
            "path-double-slash");

    private AllTests() {}

    public static void main(String[] arguments) throws Exception {
        Tests tests = new Tests(arguments[0], DEVIATIONS);
        CommonTests.addTo(tests);
        Contract.addTo(tests, arguments[0], "-Dsun.net.httpserver.maxReqTime=2");
        tests.runAndExit();
    }
}
