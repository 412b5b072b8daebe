// The counters of all workers, and their Prometheus text (section 8 of the contract).
#pragma once

#include <algorithm>
#include <atomic>
#include <sstream>

#include "session.hpp"

namespace stt {

using Counter = std::atomic<std::uint64_t>;

class Histogram {
 public:
  /// `bounds` are inclusive and ascend.
  explicit Histogram(std::vector<double> bounds) : bounds_{std::move(bounds)}, counts_(bounds_.size() + 1) {}

  void observe(double value) {
    const auto bucket = std::ranges::lower_bound(bounds_, value) - bounds_.begin();
    ++counts_[static_cast<std::size_t>(bucket)];
    sum_ += value;
  }

  void render(std::ostream& out, const std::string& name) const {
    out << "# TYPE " << name << " histogram\n";
    std::uint64_t count = 0;
    for (std::size_t index = 0; index < bounds_.size(); ++index) {
      count += counts_[index];
      out << name << "_bucket{le=\"" << bounds_[index] << "\"} " << count << "\n";
    }
    count += counts_.back();
    out << name << "_bucket{le=\"+Inf\"} " << count << "\n";
    // With six decimals: a stream would round to six digits.
    out << name << "_sum " << std::to_string(sum_) << "\n" << name << "_count " << count << "\n";
  }

 private:
  std::vector<double> bounds_;
  /// One per bound, and one for what is above the last; not cumulative.
  std::vector<Counter> counts_;
  std::atomic<double> sum_ = 0;
};

struct Metrics {
  Counter sessions;
  Counter sessions_rejected;
  Counter frames;
  Counter frames_dropped;
  Counter partials;
  std::array<Counter, kind_traits.size()> errors;
  std::array<Counter, 3> deferrals;
  Histogram buffer_frames{{1, 5, 10, 25, 40, 45, 50, 55, 60, 75, 100, 150, 200, 300, 500}};
  Histogram flush_lateness_s{{0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1}};
  Histogram inference_s{{0.01, 0.025, 0.05, 0.075, 0.1, 0.125, 0.15, 0.2, 0.3, 0.5, 0.75, 1, 2.5, 5}};

  void count(Kind kind) { ++errors[std::to_underlying(kind)]; }
  void count(Deferral deferral) { ++deferrals[std::to_underlying(deferral)]; }

  std::string render(std::size_t sessions_open, std::size_t jobs_inflight) const {
    constexpr std::array reasons{"inflight", "jobs", "outbox"};  // by `Deferral`
    std::ostringstream out;
    const auto plain = [&out](const char* name, const char* type, std::uint64_t value) {
      out << "# TYPE " << name << " " << type << "\n" << name << " " << value << "\n";
    };
    plain("stt_sessions", "gauge", sessions_open);
    plain("stt_sessions_total", "counter", sessions);
    plain("stt_sessions_rejected_total", "counter", sessions_rejected);
    plain("stt_frames_total", "counter", frames);
    plain("stt_frames_dropped_total", "counter", frames_dropped);
    plain("stt_partials_total", "counter", partials);
    plain("stt_jobs_inflight", "gauge", jobs_inflight);
    out << "# TYPE stt_errors_total counter\n";
    for (std::size_t index = 0; index < errors.size(); ++index) {
      const auto& [stage, kind, is_retryable] = kind_traits[index];
      out << "stt_errors_total{stage=\"" << stage << "\",kind=\"" << kind << "\"} " << errors[index] << "\n";
    }
    out << "# TYPE stt_ticks_deferred_total counter\n";
    for (std::size_t index = 0; index < deferrals.size(); ++index)
      out << "stt_ticks_deferred_total{reason=\"" << reasons[index] << "\"} " << deferrals[index] << "\n";
    buffer_frames.render(out, "stt_buffer_frames");
    flush_lateness_s.render(out, "stt_flush_lateness_seconds");
    inference_s.render(out, "stt_inference_seconds");
    return out.str();
  }
};

}  // namespace stt
