#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include "config.hpp"

namespace stt {
namespace {

Config with(std::string_view name, const char* value) {
  return read_config([=](const char* asked) { return asked == name ? value : nullptr; });
}

TEST(Config, DefaultsAreThoseOfTheContract) {
  const auto config = with("", "");
  EXPECT_EQ(config.port, 3000);
  EXPECT_EQ(config.inference_host, "127.0.0.1");
  EXPECT_EQ(config.inference_port, 9000);
  EXPECT_EQ(config.inference_authority, "127.0.0.1:9000");
  EXPECT_EQ(config.inference_path, "/infer");
  EXPECT_EQ(config.inference_http_clients, 1U);
  EXPECT_EQ(config.inference_timeout, std::chrono::seconds{5});
  EXPECT_EQ(config.flush_interval, std::chrono::seconds{1});
  EXPECT_EQ(config.flush_phase_jitter, std::chrono::seconds{1});
  EXPECT_EQ(config.cpu_passes, 4U);
  EXPECT_EQ(config.max_sessions, 0U);
  EXPECT_EQ(config.max_buffer_frames, 500U);
  EXPECT_EQ(config.overflow_policy, OverflowPolicy::drop_oldest);
  EXPECT_EQ(config.max_inflight_jobs, 0U);
  EXPECT_EQ(config.outbox_messages, 4U);
  EXPECT_EQ(config.start_timeout, std::chrono::seconds{10});
  EXPECT_EQ(config.drain_timeout, std::chrono::seconds{5});
  EXPECT_EQ(config.auth_token, "");
}

TEST(Config, BadValuesAreNamedInOneLine) {
  for (const auto& [name, value] : {
           std::pair{"PORT", "0"},
           std::pair{"PORT", "65536"},
           std::pair{"PORT", "+80"},
           std::pair{"PORT", "80 "},
           std::pair{"WORKER_THREADS", "0"},
           std::pair{"WORKER_THREADS", "two"},
           std::pair{"INFERENCE_URL", "127.0.0.1:9000"},
           std::pair{"INFERENCE_URL", "https://example.org"},
           std::pair{"INFERENCE_URL", "http://"},
           std::pair{"INFERENCE_URL", "http://host:port"},
           std::pair{"INFERENCE_URL", "http://host:99999"},
           std::pair{"INFERENCE_URL", "http://[::1"},
           std::pair{"INFERENCE_URL", "http://a b"},
           std::pair{"INFERENCE_URL", "http://host/?a=b"},
           std::pair{"INFERENCE_URL", "http://user@host"},
           std::pair{"INFERENCE_URL", "http://host:"},
           std::pair{"INFERENCE_URL", "http://host:0"},
           std::pair{"INFERENCE_URL", "http://[::1]81"},
           std::pair{"INFERENCE_URL", "http://[]:81"},
           std::pair{"INFERENCE_URL", ""},
           std::pair{"INFERENCE_HTTP_CLIENTS", "0"},
           std::pair{"INFERENCE_TIMEOUT_MS", "-1"},
           std::pair{"FLUSH_INTERVAL_MS", "0"},
           std::pair{"FLUSH_PHASE_JITTER_MS", "1.5"},
           std::pair{"CPU_PASSES", "4294967296"},
           std::pair{"MAX_SESSIONS", ""},
           std::pair{"MAX_BUFFER_FRAMES", "x\ny"},
           std::pair{"OVERFLOW_POLICY", "DROP"},
           std::pair{"MAX_INFLIGHT_JOBS", "all"},
           std::pair{"OUTBOX_MESSAGES", "0"},
           std::pair{"START_TIMEOUT_MS", "0"},
           std::pair{"DRAIN_TIMEOUT_MS", "99999999999999"},
       }) {
    try {
      with(name, value);
      ADD_FAILURE() << name << "=" << value << " was taken";
    } catch (const ConfigError& error) {
      const std::string message{error.what()};
      EXPECT_TRUE(message.starts_with(std::string{name} + "=")) << message;
      EXPECT_EQ(std::ranges::count(message, '\n'), 0) << message;
    }
  }
}

TEST(Config, Urls) {
  const auto numeric = with("INFERENCE_URL", "http://[::1]:81/base/");
  EXPECT_EQ(numeric.inference_host, "::1");
  EXPECT_EQ(numeric.inference_port, 81);
  EXPECT_EQ(numeric.inference_authority, "[::1]:81");
  EXPECT_EQ(numeric.inference_path, "/base/infer");
  const auto named = with("INFERENCE_URL", "http://example.org");
  EXPECT_EQ(named.inference_host, "example.org");
  EXPECT_EQ(named.inference_port, 80);
  EXPECT_EQ(named.inference_path, "/infer");
}

}  // namespace
}  // namespace stt
