#include <gtest/gtest.h>

#include "metrics.hpp"

namespace stt {
namespace {

TEST(Metrics, RendersTheSumOfAllWorkers) {
    std::vector<std::unique_ptr<Metrics>> workers;
    workers.push_back(std::make_unique<Metrics>());
    workers.push_back(std::make_unique<Metrics>());
    workers[0]->frames.add(50);
    workers[1]->frames.add(1);
    workers[1]->count_error(FailureKind::http_5xx);
    workers[0]->count_deferral(Deferral::jobs);
    workers[0]->observe_flush(51, std::chrono::microseconds{700});
    workers[1]->observe_inference(std::chrono::seconds{9});
    const auto text = render_metrics(workers, 4, 5);
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
             "stt_buffer_frames_sum 51",
             "stt_flush_lateness_seconds_bucket{le=\"0.001\"} 1",
             "stt_flush_lateness_seconds_sum 7e-04",
             "stt_inference_seconds_bucket{le=\"5\"} 0",
             "stt_inference_seconds_bucket{le=\"+Inf\"} 1",
             "stt_inference_seconds_count 1",
         }) {
        EXPECT_NE(("\n" + text).find("\n" + line + "\n"), std::string::npos) << line << " is not in\n" << text;
    }
}

} // namespace
} // namespace stt
