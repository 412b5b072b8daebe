#include <string>

#include <gtest/gtest.h>

#include "limit.hpp"
#include "metrics.hpp"

namespace stt {
namespace {

TEST(Metrics, RendersEverySeriesFromTheStart) {
  Metrics metrics;
  metrics.frames += 51;
  metrics.count(Kind::http_5xx);
  metrics.count(Deferral::jobs);
  metrics.buffer_frames.observe(51);
  metrics.flush_lateness_s.observe(0.0007);
  metrics.inference_s.observe(9);
  const auto text = metrics.render(4, 5);
  for (const std::string line : {
           "# TYPE stt_sessions gauge",
           "stt_sessions 4",
           "stt_jobs_inflight 5",
           "stt_frames_total 51",
           "stt_errors_total{stage=\"inference_request\",kind=\"http_5xx\"} 1",
           "stt_errors_total{stage=\"input_buffer\",kind=\"overflow\"} 0",
           "stt_ticks_deferred_total{reason=\"jobs\"} 1",
           "stt_ticks_deferred_total{reason=\"outbox\"} 0",
           "stt_buffer_frames_bucket{le=\"50\"} 0",
           "stt_buffer_frames_bucket{le=\"55\"} 1",
           "stt_buffer_frames_sum 51.000000",
           "stt_flush_lateness_seconds_bucket{le=\"0.001\"} 1",
           "stt_inference_seconds_bucket{le=\"5\"} 0",
           "stt_inference_seconds_bucket{le=\"+Inf\"} 1",
           "stt_inference_seconds_count 1",
       }) {
    EXPECT_NE(("\n" + text).find("\n" + line + "\n"), std::string::npos) << line << " is not in\n" << text;
  }
}

TEST(Limit, GivesNoMoreThanItHasAndTakesThemBack) {
  Limit limit{2};
  auto first = limit.try_acquire();
  const auto second = limit.try_acquire();
  EXPECT_TRUE(first && second);
  EXPECT_FALSE(limit.try_acquire());
  first.reset();
  EXPECT_EQ(limit.in_use(), 1U);
  EXPECT_TRUE(limit.try_acquire());
}

}  // namespace
}  // namespace stt
