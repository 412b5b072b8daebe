// The environment variables of section 8 of the contract.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>

namespace stt {

using Clock = std::chrono::steady_clock;
using TimePoint = Clock::time_point;
using Duration = Clock::duration;

enum class OverflowPolicy : std::uint8_t { drop_oldest, drop_newest, close };

/// A bad value; the message is one line that names the variable.
struct ConfigError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Config {
  std::uint16_t port;
  std::size_t worker_threads;
  /// Without the brackets of an IPv6 address.
  std::string inference_host;
  std::uint16_t inference_port;
  /// Host and port as they were given.
  std::string inference_authority;
  std::string inference_path;
  /// Connections of each worker.
  std::size_t inference_http_clients;
  Duration inference_timeout;
  Duration flush_interval;
  Duration flush_phase_jitter;
  std::uint32_t cpu_passes;
  std::size_t max_sessions;
  std::size_t max_buffer_frames;
  OverflowPolicy overflow_policy;
  std::size_t max_inflight_jobs;
  std::size_t outbox_messages;
  Duration start_timeout;
  Duration drain_timeout;
  std::string auth_token;
};

/// The value of a variable, or null where it is not set.
using Lookup = std::function<const char*(const char* name)>;

/// Throws `ConfigError`.
Config read_config(const Lookup& lookup);

}  // namespace stt
