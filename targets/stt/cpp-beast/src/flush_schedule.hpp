// The absolute schedule of flushes: origin + k · interval, k = 1, 2, …
#pragma once

#include <cassert>
#include <optional>

#include "clock.hpp"

namespace stt {

/// Ticks are computed from each other, never from "now", so that a late one moves no other.
class FlushSchedule {
public:
    /// `origin` is the session's start plus its jitter.
    FlushSchedule(TimePoint origin, Duration interval) noexcept : next_{origin + interval}, interval_{interval} {
        assert(interval > Duration::zero());
    }

    [[nodiscard]] TimePoint next() const noexcept { return next_; }

    /// When the tick that is due at `now` was scheduled, if one is due. Further ticks that `now` is past are skipped: one
    /// flush takes all that they could take.
    [[nodiscard]] std::optional<TimePoint> take_due(TimePoint now) noexcept {
        if (now < next_) {
            return std::nullopt;
        }
        const auto due = next_;
        next_ += ((now - next_) / interval_ + 1) * interval_;
        return due;
    }

private:
    TimePoint next_;
    Duration interval_;
};

} // namespace stt
