package plimsoll.http;

import java.time.Duration;

/** What happens at SIGTERM: the server drains, within a time, and the process ends with 0. */
public final class Shutdown {
    private static final int EXIT_FAILURE = 1;

    private Shutdown() {}

    /** Stops accepting, answers what is in flight, and returns. Has {@code timeout} to do so. */
    @FunctionalInterface
    public interface Drain {
        void run(Duration timeout) throws Exception;
    }

    public static void onSigterm(Config config, Drain drain) {
        Runtime.getRuntime()
                .addShutdownHook(Thread.ofPlatform().name("drain").unstarted(() -> end(config.drainTimeout(), drain)));
    }

    /** Ends the process after a server failed to start. A hook would wait for it, so this one does not run hooks. */
    public static void failed(Throwable cause) {
        System.err.println("the server did not start: " + cause);
        Runtime.getRuntime().halt(EXIT_FAILURE);
    }

    /** Runs when the JVM has been told to end. It ends here, with 0: by itself the JVM would report the signal. */
    private static void end(Duration timeout, Drain drain) {
        // A fifth is left for the process to end, which a busy machine may delay.
        Duration usable = timeout.minus(timeout.dividedBy(5));
        Thread draining = Thread.ofPlatform().daemon().name("draining").start(() -> {
            try {
                drain.run(usable);
            } catch (InterruptedException _) {
                Thread.currentThread().interrupt();
            } catch (Exception e) {
                System.err.println("the drain failed: " + e);
            }
        });
        try {
            draining.join(usable);
        } catch (InterruptedException _) {
            Thread.currentThread().interrupt();
        }
        Runtime.getRuntime().halt(0);
    }
}
