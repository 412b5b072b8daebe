#include "config.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <string_view>
#include <thread>

namespace stt {

namespace {

/// Ten days: in milliseconds still an `int`, as uSockets' timers want it.
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
bool read_number(std::string_view given, Number& value) {
  const auto [rest, error] = std::from_chars(given.data(), given.data() + given.size(), value);
  return error == std::errc{} && rest == given.data() + given.size();
}

template <class Number>
Number number(const Lookup& lookup, const char* name, Number fallback, Number min,
              Number max = std::numeric_limits<Number>::max()) {
  const char* const given = lookup(name);
  if (given == nullptr) return fallback;
  Number value{};
  if (!read_number(given, value) || value < min || value > max)
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

bool consists_of(std::string_view text, std::string_view others) {
  const auto is_alphanumeric = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
  };
  return std::ranges::all_of(text, [&](char c) { return is_alphanumeric(c) || others.contains(c); });
}

/// `http://HOST[:PORT][/PATH]`; false if `url` is anything else.
bool split_inference_url(std::string_view url, Config& config) {
  constexpr std::string_view scheme = "http://";
  if (!url.starts_with(scheme)) return false;
  url.remove_prefix(scheme.size());
  const auto authority = url.substr(0, url.find('/'));
  auto path = url.substr(authority.size());
  const bool is_ipv6 = authority.starts_with('[');
  // For an IPv6 address without an end this is 0, so that there is no host.
  const auto host_size = is_ipv6 ? authority.find(']') + 1 : std::min(authority.find(':'), authority.size());
  const auto host = authority.substr(0, host_size);
  const auto port = authority.substr(host_size);
  config.inference_host = is_ipv6 && !host.empty() ? host.substr(1, host.size() - 2) : host;
  config.inference_port = 80;
  if (!port.empty() && (port[0] != ':' || !read_number(port.substr(1), config.inference_port))) return false;
  config.inference_authority = authority;
  config.inference_path = std::string{path.substr(0, path.find_last_not_of('/') + 1)} + "/infer";
  return !config.inference_host.empty() && consists_of(config.inference_host, is_ipv6 ? ":.%" : "-._") &&
         config.inference_port != 0 && consists_of(path, "/-._~!$&'()*+,;=:@%");
}

}  // namespace

Config read_config(const Lookup& lookup) {
  Config config;
  const auto url = text(lookup, "INFERENCE_URL", "http://127.0.0.1:9000");
  if (!split_inference_url(url, config)) refuse("INFERENCE_URL", url, "not a base URL like http://host:port");
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
