// The one clock of the gateway, and the units of its messages.
#pragma once

#include <chrono>

namespace stt {

using Clock = std::chrono::steady_clock;
using TimePoint = Clock::time_point;
using Duration = Clock::duration;

/// Fractional milliseconds, as messages carry them.
using Milliseconds = std::chrono::duration<double, std::milli>;

} // namespace stt
