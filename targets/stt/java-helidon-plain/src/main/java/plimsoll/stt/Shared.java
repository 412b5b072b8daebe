package plimsoll.stt;

/** What all sessions share: among it open sessions against {@code MAX_SESSIONS}, and requests against {@code MAX_INFLIGHT_JOBS}. */
record Shared(Config config, Metrics metrics, Limit sessions, Limit jobs, InferenceClient inference) {
    static Shared of(Config config) {
        return new Shared(
                config,
                new Metrics(),
                new Limit(config.maxSessions()),
                new Limit(config.maxInflightJobs()),
                new InferenceClient(config));
    }
}
