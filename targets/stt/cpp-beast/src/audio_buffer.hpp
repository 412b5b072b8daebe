// The audio that waits for the next flush, and what becomes of it when it is too much.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "audio_chain.hpp"
#include "clock.hpp"
#include "messages.hpp"

namespace stt {

enum class OverflowPolicy : std::uint8_t { drop_oldest, drop_newest, close };

/// A buffer's whole content on its way out.
struct Batch {
    FrameRange range;
    AudioChain audio;
};

/// Numbers the frames of a session and holds those that wait.
///
/// Frames leave in the order of their numbers, in up to three contiguous ranges: dropped before the buffer, buffered,
/// dropped behind it. Under `drop_oldest` only the first kind of drop occurs; what `drop_newest` drops lies behind the
/// buffer first, and before it once that has been taken.
class AudioBuffer {
public:
    enum class Pushed : std::uint8_t {
        kept,
        /// A frame was dropped, this one or the oldest, and will be reported.
        dropped,
        /// The policy asks to close the session; the frame was not accepted.
        refused,
    };

    AudioBuffer(OverflowPolicy policy, std::size_t frames_max, BlockPool& pool) noexcept
        : policy_{policy}, frames_max_{frames_max}, pool_{pool} {}

    Pushed push(TimePoint now, Frame frame);

    [[nodiscard]] std::size_t frames() const noexcept { return audio_.frames(); }

    /// Whether a tick would find anything to send or to report.
    [[nodiscard]] bool is_waiting() const noexcept { return !audio_.empty() || dropped_before_.has_value(); }

    /// The dropped frames that come before the buffered ones. They must be taken and reported before `take`.
    [[nodiscard]] std::optional<FrameRange> take_dropped();

    /// The whole buffer, which must not be empty.
    [[nodiscard]] Batch take();

private:
    [[nodiscard]] std::uint64_t oldest_seq() const noexcept;

    OverflowPolicy policy_;
    std::size_t frames_max_;
    BlockPool& pool_;
    std::uint64_t next_seq_ = 1;
    AudioChain audio_;
    std::optional<FrameRange> dropped_before_;
    std::optional<FrameRange> dropped_behind_;
};

} // namespace stt
