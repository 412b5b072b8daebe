package plimsoll.http.bare;

import java.util.Set;
import plimsoll.http.test.CommonTests;
import plimsoll.http.test.Contract;
import plimsoll.http.test.Tests;

/** The parser by itself, and one of the four targets as a process. */
public final class AllTests {
    private AllTests() {}

    public static void main(String[] arguments) throws Exception {
        Tests tests = new Tests(arguments[0], Set.of());
        CommonTests.addTo(tests);
        ParserTests.addTo(tests);
        Contract.addTo(tests, arguments[0], "-Dplimsoll.request_timeout_s=2");
        tests.runAndExit();
    }
}
