#include "metrics.hpp"

#include <charconv>
#include <concepts>
#include <string_view>

namespace stt {

namespace {

using Workers = std::span<const std::unique_ptr<Metrics>>;

constexpr double us_per_s = 1e6;

std::uint64_t microseconds(Duration elapsed) noexcept {
    return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(elapsed).count());
}

template <class Number> void append_number(std::string& text, Number value) {
    std::array<char, 32> digits{};
    const auto written = std::to_chars(digits.data(), digits.data() + digits.size(), value);
    text.append(digits.data(), written.ptr);
}

void append_type(std::string& text, std::string_view name, std::string_view type) {
    text.append("# TYPE ").append(name).append(" ").append(type).append("\n");
}

template <class Number>
void append_sample(std::string& text, std::string_view name, std::string_view labels, Number value) {
    text.append(name).append(labels).append(" ");
    append_number(text, value);
    text += '\n';
}

/// The sum over all workers of what `get` takes out of each.
template <std::invocable<const Metrics&> Get> std::uint64_t total(Workers workers, Get get) {
    std::uint64_t sum = 0;
    for (const auto& worker : workers) {
        sum += get(*worker);
    }
    return sum;
}

void append_plain(std::string& text, std::string_view name, std::string_view type, std::uint64_t value) {
    append_type(text, name, type);
    append_sample(text, name, "", value);
}

void append_counter(std::string& text, std::string_view name, Workers workers, Counter Metrics::* counter) {
    append_plain(text, name, "counter",
                 total(workers, [counter](const Metrics& metrics) { return (metrics.*counter).get(); }));
}

/// `scale`: counted units per rendered unit.
template <std::size_t Size>
void append_histogram(std::string& text, const std::string& name, Workers workers, Histogram<Size> Metrics::* histogram,
                      const std::array<std::uint64_t, Size>& bounds, double scale) {
    append_type(text, name, "histogram");
    std::uint64_t count = 0;
    for (std::size_t index = 0; index <= Size; ++index) {
        count += total(workers, [=](const Metrics& metrics) { return (metrics.*histogram).bucket(index); });
        std::string labels = "{le=\"";
        if (index < Size) {
            append_number(labels, static_cast<double>(bounds[index]) / scale);
        } else {
            labels += "+Inf";
        }
        append_sample(text, name + "_bucket", labels + "\"}", count);
    }
    const auto sum = total(workers, [=](const Metrics& metrics) { return (metrics.*histogram).sum(); });
    append_sample(text, name + "_sum", "", static_cast<double>(sum) / scale);
    append_sample(text, name + "_count", "", count);
}

void append_errors(std::string& text, Workers workers) {
    append_type(text, "stt_errors_total", "counter");
    for (const auto kind : failure_kinds) {
        std::string labels = "{stage=\"";
        labels.append(stage_of(kind)).append("\",kind=\"").append(name_of(kind)).append("\"}");
        const auto count =
            total(workers, [kind](const Metrics& metrics) { return metrics.errors[std::to_underlying(kind)].get(); });
        append_sample(text, "stt_errors_total", labels, count);
    }
}

void append_deferrals(std::string& text, Workers workers) {
    constexpr std::array<std::string_view, 3> reasons{"inflight", "jobs", "outbox"};
    append_type(text, "stt_ticks_deferred_total", "counter");
    for (std::size_t index = 0; index < reasons.size(); ++index) {
        std::string labels = "{reason=\"";
        labels.append(reasons[index]).append("\"}");
        const auto count = total(workers, [index](const Metrics& metrics) { return metrics.deferred[index].get(); });
        append_sample(text, "stt_ticks_deferred_total", labels, count);
    }
}

} // namespace

void Metrics::observe_flush(std::uint64_t frame_count, Duration lateness) noexcept {
    buffer_frames.observe(frame_count);
    flush_lateness.observe(microseconds(lateness));
}

void Metrics::observe_inference(Duration elapsed) noexcept {
    inference.observe(microseconds(elapsed));
}

std::string render_metrics(Workers workers, std::size_t sessions_open, std::size_t jobs_inflight) {
    std::string text;
    text.reserve(std::size_t{8} * 1024);
    append_plain(text, "stt_sessions", "gauge", sessions_open);
    append_counter(text, "stt_sessions_total", workers, &Metrics::sessions);
    append_counter(text, "stt_sessions_rejected_total", workers, &Metrics::sessions_rejected);
    append_counter(text, "stt_frames_total", workers, &Metrics::frames);
    append_counter(text, "stt_frames_dropped_total", workers, &Metrics::frames_dropped);
    append_counter(text, "stt_partials_total", workers, &Metrics::partials);
    append_errors(text, workers);
    append_plain(text, "stt_jobs_inflight", "gauge", jobs_inflight);
    append_deferrals(text, workers);
    append_histogram(text, "stt_buffer_frames", workers, &Metrics::buffer_frames, bounds::frames, 1);
    append_histogram(text, "stt_flush_lateness_seconds", workers, &Metrics::flush_lateness, bounds::lateness_us,
                     us_per_s);
    append_histogram(text, "stt_inference_seconds", workers, &Metrics::inference, bounds::inference_us, us_per_s);
    return text;
}

} // namespace stt
