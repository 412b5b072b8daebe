#include <algorithm>

#include <gtest/gtest.h>

#include "config.hpp"

namespace stt {
namespace {

std::expected<Config, std::string> with(std::string_view name, std::string_view value) {
    return Config::from_lookup([=](const char* asked) -> std::optional<std::string> {
        return asked == name ? std::optional<std::string>{value} : std::nullopt;
    });
}

TEST(Config, DefaultsAreThoseOfTheContract) {
    const auto config = with("", "");
    ASSERT_TRUE(config);
    EXPECT_EQ(config->port, 3000);
    EXPECT_EQ(config->inference_url.host, "127.0.0.1");
    EXPECT_EQ(config->inference_url.port, 9000);
    EXPECT_EQ(config->inference_url.path, "/infer");
    EXPECT_EQ(config->inference_connections, 1U);
    EXPECT_EQ(config->flush_phase_jitter, std::chrono::seconds{1});
    EXPECT_EQ(config->drain_timeout, std::chrono::seconds{5});
    EXPECT_EQ(config->session.flush_interval, std::chrono::seconds{1});
    EXPECT_EQ(config->session.inference_timeout, std::chrono::seconds{5});
    EXPECT_EQ(config->session.start_timeout, std::chrono::seconds{10});
    EXPECT_EQ(config->session.buffer_frames_max, 500U);
    EXPECT_EQ(config->session.overflow_policy, OverflowPolicy::drop_oldest);
    EXPECT_EQ(config->session.outbox_messages_max, 4U);
    EXPECT_EQ(config->sessions_max, 0U);
    EXPECT_EQ(config->auth_token, "");
    EXPECT_EQ(config->read_pace, Duration::zero());
}

TEST(Config, BadValuesAreNamedInOneLine) {
    using Pair = std::pair<const char*, const char*>;
    for (const auto& [name, value] : {
             Pair{"PORT", "0"},
             Pair{"PORT", "65536"},
             Pair{"PORT", "+80"},
             Pair{"PORT", "80 "},
             Pair{"WORKER_THREADS", "0"},
             Pair{"WORKER_THREADS", "two"},
             Pair{"INFERENCE_URL", "127.0.0.1:9000"},
             Pair{"INFERENCE_URL", "https://example.org"},
             Pair{"INFERENCE_URL", "http://"},
             Pair{"INFERENCE_URL", "http://host:port"},
             Pair{"INFERENCE_URL", "http://host:99999"},
             Pair{"INFERENCE_URL", "http://[::1"},
             Pair{"INFERENCE_URL", "http://a b"},
             Pair{"INFERENCE_URL", ""},
             Pair{"INFERENCE_HTTP_CLIENTS", "0"},
             Pair{"INFERENCE_TIMEOUT_MS", "-1"},
             Pair{"FLUSH_INTERVAL_MS", "0"},
             Pair{"FLUSH_PHASE_JITTER_MS", "1.5"},
             Pair{"CPU_PASSES", "4294967296"},
             Pair{"MAX_SESSIONS", ""},
             Pair{"MAX_SESSIONS", "x\ny"},
             Pair{"MAX_BUFFER_FRAMES", "0"},
             Pair{"OVERFLOW_POLICY", "DROP"},
             Pair{"MAX_INFLIGHT_JOBS", "all"},
             Pair{"OUTBOX_MESSAGES", "0"},
             Pair{"START_TIMEOUT_MS", "0"},
             Pair{"DRAIN_TIMEOUT_MS", "99999999999999"},
             Pair{"READ_PACE_MS", "251"},
         }) {
        const auto config = with(name, value);
        ASSERT_FALSE(config) << name << "=" << value;
        EXPECT_TRUE(config.error().starts_with(std::string{name} + "=")) << config.error();
        EXPECT_EQ(std::ranges::count(config.error(), '\n'), 0) << config.error();
    }
}

TEST(Config, Urls) {
    const auto numeric = InferenceUrl::parse("http://[::1]:81/base/");
    ASSERT_TRUE(numeric);
    EXPECT_EQ(numeric->host, "::1");
    EXPECT_EQ(numeric->port, 81);
    EXPECT_EQ(numeric->authority, "[::1]:81");
    EXPECT_EQ(numeric->path, "/base/infer");
    const auto named = InferenceUrl::parse("http://example.org");
    ASSERT_TRUE(named);
    EXPECT_EQ(named->host, "example.org");
    EXPECT_EQ(named->port, 80);
}

} // namespace
} // namespace stt
