// Counters of one worker thread, and the Prometheus text of all.
//
// Each worker writes its own set, so that counting a frame is a load and a store of a line that no other core holds; a
// scrape adds the sets up.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "clock.hpp"
#include "failure.hpp"

namespace stt {

/// Written by one thread, read by any.
class Counter {
public:
    void add(std::uint64_t count) noexcept {
        // No read-modify-write instruction is needed, for there is one writer.
        value_.store(value_.load(std::memory_order_relaxed) + count, std::memory_order_relaxed);
    }

    [[nodiscard]] std::uint64_t get() const noexcept { return value_.load(std::memory_order_relaxed); }

private:
    std::atomic<std::uint64_t> value_ = 0;
};

/// Counts whole numbers (frames or microseconds) in buckets; `bounds` are inclusive and ascend.
template <std::size_t Size> class Histogram {
public:
    explicit constexpr Histogram(const std::array<std::uint64_t, Size>& bounds) noexcept : bounds_{&bounds} {}

    void observe(std::uint64_t value) noexcept {
        const auto bucket = std::ranges::lower_bound(*bounds_, value) - bounds_->begin();
        buckets_[static_cast<std::size_t>(bucket)].add(1);
        sum_.add(value);
    }

    [[nodiscard]] const auto& bounds() const noexcept { return *bounds_; }
    [[nodiscard]] std::uint64_t bucket(std::size_t index) const noexcept { return buckets_[index].get(); }
    [[nodiscard]] std::uint64_t sum() const noexcept { return sum_.get(); }

private:
    const std::array<std::uint64_t, Size>* bounds_;
    /// One per bound, and one for what is above the last; not cumulative.
    std::array<Counter, Size + 1> buckets_;
    Counter sum_;
};

/// Why a tick did nothing.
enum class Deferral : std::uint8_t { inflight, jobs, outbox };

namespace bounds {
inline constexpr std::array<std::uint64_t, 15> frames{1, 5, 10, 25, 40, 45, 50, 55, 60, 75, 100, 150, 200, 300, 500};
inline constexpr std::array<std::uint64_t, 11> lateness_us{500,    1'000,   2'000,   5'000,   10'000,   20'000,
                                                           50'000, 100'000, 250'000, 500'000, 1'000'000};
inline constexpr std::array<std::uint64_t, 14> inference_us{10'000,  25'000,    50'000,    75'000,   100'000,
                                                            125'000, 150'000,   200'000,   300'000,  500'000,
                                                            750'000, 1'000'000, 2'500'000, 5'000'000};
} // namespace bounds

/// On a cache line of its own.
struct alignas(64) Metrics {
    Counter sessions;
    Counter sessions_rejected;
    Counter frames;
    Counter frames_dropped;
    Counter partials;
    std::array<Counter, failure_kinds.size()> errors;
    std::array<Counter, 3> deferred;
    Histogram<bounds::frames.size()> buffer_frames{bounds::frames};
    Histogram<bounds::lateness_us.size()> flush_lateness{bounds::lateness_us};
    Histogram<bounds::inference_us.size()> inference{bounds::inference_us};

    void count_error(FailureKind kind) noexcept { errors[std::to_underlying(kind)].add(1); }
    void count_deferral(Deferral reason) noexcept { deferred[std::to_underlying(reason)].add(1); }
    void observe_flush(std::uint64_t frame_count, Duration lateness) noexcept;
    void observe_inference(Duration elapsed) noexcept;
};

/// The Prometheus text format, version 0.0.4.
[[nodiscard]] std::string render_metrics(std::span<const std::unique_ptr<Metrics>> workers, std::size_t sessions_open,
                                         std::size_t jobs_inflight);

} // namespace stt
