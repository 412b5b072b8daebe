package plimsoll.http.test;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.TreeSet;

/** Runs named checks one after another, and counts. Its last line: {@code NAME: N passed, N failed, N skipped}. */
public final class Tests {
    /** A check fails by throwing. */
    public interface Check {
        void run() throws Exception;
    }

    private record Named(String name, Check check) {}

    private final String target;
    private final Set<String> deviations;
    private final List<Named> checks = new ArrayList<>();

    /** {@code deviations} names checks that must fail: a deviation that is none is no longer to be declared. */
    public Tests(String target, Set<String> deviations) {
        this.target = target;
        this.deviations = new TreeSet<>(deviations);
    }

    public void add(String name, Check check) {
        checks.add(new Named(name, check));
    }

    /** Runs all, and ends the process with 0 if each did what it should. */
    public void runAndExit() {
        int passed = 0;
        List<String> failures = new ArrayList<>();
        for (Named named : checks) {
            String failure = run(named);
            if (failure == null) {
                passed++;
            } else {
                failures.add(failure);
                System.out.println("FAILED " + failure);
            }
        }
        for (String unused : deviations) {
            failures.add(unused);
            System.out.println("FAILED " + unused + ": declared as a deviation, and no check has that name");
        }
        System.out.println(target + ": " + passed + " passed, " + failures.size() + " failed, 0 skipped");
        System.out.flush();
        Runtime.getRuntime().halt(failures.isEmpty() && passed > 0 ? 0 : 1);
    }

    /** Returns what is wrong, or null. */
    private String run(Named named) {
        boolean mustFail = deviations.remove(named.name);
        try {
            named.check.run();
            return mustFail ? named.name + ": declared as a deviation, and passed" : null;
        } catch (Exception | AssertionError e) {
            if (mustFail) {
                System.out.println("deviation " + named.name + ": " + e.getMessage());
                return null;
            }
            String place = Arrays.stream(e.getStackTrace())
                    .filter(frame -> !frame.getMethodName().startsWith("assert"))
                    .filter(frame -> frame.getClassName().startsWith("plimsoll"))
                    .findFirst()
                    .map(StackTraceElement::toString)
                    .orElse("?");
            return named.name + ": " + e + " at " + place;
        }
    }

    public static void assertEquals(Object wanted, Object found) {
        if (!Objects.equals(wanted, found)) {
            throw new AssertionError("wanted <" + shortened(wanted) + ">, found <" + shortened(found) + ">");
        }
    }

    public static void assertTrue(boolean holds, String what) {
        if (!holds) {
            throw new AssertionError(what);
        }
    }

    private static String shortened(Object value) {
        String text = String.valueOf(value);
        return text.length() <= 200 ? text : text.substring(0, 200) + "… (" + text.length() + " characters)";
    }
}
