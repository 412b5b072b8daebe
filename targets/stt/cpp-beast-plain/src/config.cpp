#include "config.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <regex>
#include <string_view>
#include <thread>

namespace stt {

namespace {

/// Ten days: sums of such durations stay far from an overflow.
constexpr std::uint64_t max_duration_ms = std::uint64_t{10} * 24 * 3600 * 1000;
constexpr std::size_t million = 1'000'000;

[[noreturn]] void refuse(const char* name, std::string value, const std::string& problem) {
  // One line, whatever the value is.
  std::ranges::replace_if(value, [](char c) { return static_cast<unsigned char>(c) < ' '; }, '?');
  throw ConfigError{std::string{name} + "=\"" + value + "\": " + problem};
}

std::string text(const Lookup& lookup, const char* name, const char* fallback) {
  const char* const value = lookup(name);
  return value == nullptr ? fallback : value;
}

template <class Number>
Number number(const Lookup& lookup, const char* name, Number fallback, Number min,
              Number max = std::numeric_limits<Number>::max()) {
  const char* const given = lookup(name);
  if (given == nullptr) return fallback;
  const char* const end = given + std::string_view{given}.size();
  Number value{};
  const auto [rest, error] = std::from_chars(given, end, value);
  if (error != std::errc{} || rest != end || value < min || value > max)
    refuse(name, given, "not a whole number from " + std::to_string(min) + " to " + std::to_string(max));
  return value;
}

Duration milliseconds(const Lookup& lookup, const char* name, std::uint64_t fallback_ms, std::uint64_t min_ms) {
  return std::chrono::milliseconds{number(lookup, name, fallback_ms, min_ms, max_duration_ms)};
}

OverflowPolicy overflow_policy(const Lookup& lookup) {
  constexpr std::array names{"drop_oldest", "drop_newest", "close"};  // by `OverflowPolicy`
  const auto given = text(lookup, "OVERFLOW_POLICY", "drop_oldest");
  const auto found = std::ranges::find(names, given);
  if (found == names.end()) refuse("OVERFLOW_POLICY", given, "not one of drop_oldest, drop_newest, close");
  return static_cast<OverflowPolicy>(found - names.begin());
}

void read_inference_url(const Lookup& lookup, Config& config) {
  const auto given = text(lookup, "INFERENCE_URL", "http://127.0.0.1:9000");
  // Boost.URL is no longer made of headers alone. This is all that is asked of it.
  static const std::regex base_url{R"(http://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::(\d+))?(/[^?#\s]*)?)"};
  std::smatch parts;
  if (!std::regex_match(given, parts, base_url)) refuse("INFERENCE_URL", given, "not a base URL like http://host:port");
  const auto host = parts.str(1);
  const auto bracketed = host.starts_with('[');
  config.inference_host = bracketed ? host.substr(1, host.size() - 2) : host;
  const auto port = parts[2].matched ? parts.str(2) : "80";
  config.inference_port = std::to_string(
      number<std::uint16_t>([&port](const char* /*name*/) { return port.c_str(); }, "INFERENCE_URL", 80, 1));
  config.inference_authority = host + (parts[2].matched ? ":" + config.inference_port : "");
  auto path = parts.str(3);
  path.erase(path.find_last_not_of('/') + 1);
  config.inference_path = path + "/infer";
}

}  // namespace

Config read_config(const Lookup& lookup) {
  Config config;
  read_inference_url(lookup, config);
  const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
  config.port = number<std::uint16_t>(lookup, "PORT", 3000, 1);
  config.worker_threads = number<std::size_t>(lookup, "WORKER_THREADS", cores, 1, 1024);
  config.inference_http_clients = number<std::size_t>(lookup, "INFERENCE_HTTP_CLIENTS", 1, 1, 1024);
  config.inference_timeout = milliseconds(lookup, "INFERENCE_TIMEOUT_MS", 5000, 1);
  config.flush_interval = milliseconds(lookup, "FLUSH_INTERVAL_MS", 1000, 1);
  config.flush_phase_jitter = milliseconds(lookup, "FLUSH_PHASE_JITTER_MS", 1000, 0);
  config.cpu_passes = number<std::uint32_t>(lookup, "CPU_PASSES", 4, 1);
  config.max_sessions = number<std::size_t>(lookup, "MAX_SESSIONS", 0, 0);
  config.max_buffer_frames = number<std::size_t>(lookup, "MAX_BUFFER_FRAMES", 500, 1, million);
  config.overflow_policy = overflow_policy(lookup);
  config.max_inflight_jobs = number<std::size_t>(lookup, "MAX_INFLIGHT_JOBS", 0, 0);
  config.outbox_messages = number<std::size_t>(lookup, "OUTBOX_MESSAGES", 4, 1, million);
  config.start_timeout = milliseconds(lookup, "START_TIMEOUT_MS", 10'000, 1);
  config.drain_timeout = milliseconds(lookup, "DRAIN_TIMEOUT_MS", 5000, 1);
  config.auth_token = text(lookup, "AUTH_TOKEN", "");
  return config;
}

}  // namespace stt
