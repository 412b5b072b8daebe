// What the workers share: the configuration, the caps, the counters. Nothing in it is written for a mere frame but a
// worker's own counters.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

#include "config.hpp"
#include "limit.hpp"
#include "metrics.hpp"

namespace stt {

struct Gateway {
    explicit Gateway(Config configuration)
        : config{std::move(configuration)}, sessions{config.sessions_max}, jobs{config.jobs_max} {
        for (std::size_t index = 0; index < config.worker_threads; ++index) {
            metrics.push_back(std::make_unique<Metrics>());
        }
    }

    const Config config;
    /// Open sessions, against MAX_SESSIONS.
    Limit sessions;
    /// Requests in flight, against MAX_INFLIGHT_JOBS.
    Limit jobs;
    /// Upgraded sockets, a little longer open than their sessions: the closing handshake follows.
    Limit sockets{0};
    /// One per worker.
    std::vector<std::unique_ptr<Metrics>> metrics;
    std::atomic<bool> is_draining = false;
};

} // namespace stt
