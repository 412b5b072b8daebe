// The counters of all workers, and their Prometheus text (section 8 of the contract).
#pragma once

#include <algorithm>
#include <atomic>
#include <charconv>

#include "session.hpp"

namespace stt {

using Counter = std::atomic<std::uint64_t>;

/// Text in the making.
class Exposition {
 public:
  void type(const std::string& name, const char* type) { text_ += "# TYPE " + name + " " + type + "\n"; }

  template <class Number>
  void sample(const std::string& series, Number value) {
    text_ += series + " " + digits(value) + "\n";
  }

  void plain(const std::string& name, const char* kind, std::uint64_t value) {
    type(name, kind);
    sample(name, value);
  }

  template <class Number>
  static std::string digits(Number value) {
    std::array<char, 32> text{};
    return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
  }

  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

class Histogram {
 public:
  /// `bounds` are inclusive and ascend.
  explicit Histogram(std::vector<double> bounds) : bounds_{std::move(bounds)}, counts_(bounds_.size() + 1) {}

  void observe(double value) {
    const auto bucket = std::ranges::lower_bound(bounds_, value) - bounds_.begin();
    ++counts_[static_cast<std::size_t>(bucket)];
    sum_ += value;
  }

  void render(Exposition& out, const std::string& name) const {
    out.type(name, "histogram");
    std::uint64_t count = 0;
    for (std::size_t index = 0; index < counts_.size(); ++index) {
      count += counts_[index];
      const auto bound = index < bounds_.size() ? Exposition::digits(bounds_[index]) : "+Inf";
      out.sample(name + "_bucket{le=\"" + bound + "\"}", count);
    }
    out.sample(name + "_sum", sum_.load());
    out.sample(name + "_count", count);
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
    Exposition out;
    out.plain("stt_sessions", "gauge", sessions_open);
    out.plain("stt_sessions_total", "counter", sessions);
    out.plain("stt_sessions_rejected_total", "counter", sessions_rejected);
    out.plain("stt_frames_total", "counter", frames);
    out.plain("stt_frames_dropped_total", "counter", frames_dropped);
    out.plain("stt_partials_total", "counter", partials);
    out.plain("stt_jobs_inflight", "gauge", jobs_inflight);
    out.type("stt_errors_total", "counter");
    for (std::size_t index = 0; index < errors.size(); ++index) {
      const auto& [stage, kind, is_retryable] = kind_traits[index];
      const auto labels = "{stage=\"" + std::string{stage} + "\",kind=\"" + std::string{kind} + "\"}";
      out.sample("stt_errors_total" + labels, errors[index].load());
    }
    out.type("stt_ticks_deferred_total", "counter");
    for (std::size_t index = 0; index < deferrals.size(); ++index)
      out.sample(std::string{"stt_ticks_deferred_total{reason=\""} + reasons[index] + "\"}", deferrals[index].load());
    buffer_frames.render(out, "stt_buffer_frames");
    flush_lateness_s.render(out, "stt_flush_lateness_seconds");
    inference_s.render(out, "stt_inference_seconds");
    return out.take();
  }
};

}  // namespace stt
