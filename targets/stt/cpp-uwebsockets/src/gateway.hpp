// What all workers share.
#pragma once

#include "limit.hpp"
#include "metrics.hpp"

namespace stt {

struct Gateway {
  explicit Gateway(Config configuration) : config{std::move(configuration)} {}

  const Config config;
  Metrics metrics;
  Limit sessions{config.max_sessions};
  Limit jobs{config.max_inflight_jobs};
  std::atomic<bool> is_draining = false;
};

}  // namespace stt
