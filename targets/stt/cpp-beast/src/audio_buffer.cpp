#include "audio_buffer.hpp"

#include <cassert>
#include <utility>

namespace stt {

namespace {

/// Lengthens a range of dropped frames by the one that follows it.
void extend(std::optional<FrameRange>& dropped, std::uint64_t seq, TimePoint received_at) {
    if (!dropped) {
        dropped = FrameRange{.oldest_seq = seq, .newest_seq = seq, .oldest_at = received_at, .newest_at = received_at};
        return;
    }
    assert(seq == dropped->newest_seq + 1);
    dropped->newest_seq = seq;
    dropped->newest_at = received_at;
}

} // namespace

AudioBuffer::Pushed AudioBuffer::push(TimePoint now, Frame frame) {
    const bool full = audio_.frames() == frames_max_;
    if (full) {
        switch (policy_) {
        case OverflowPolicy::close:
            return Pushed::refused;
        case OverflowPolicy::drop_newest:
            extend(dropped_behind_, next_seq_++, now);
            return Pushed::dropped;
        case OverflowPolicy::drop_oldest:
            const auto seq = oldest_seq();
            extend(dropped_before_, seq, audio_.pop_front());
            break;
        }
    }
    audio_.push_back(pool_, now, frame);
    ++next_seq_;
    return full ? Pushed::dropped : Pushed::kept;
}

std::optional<FrameRange> AudioBuffer::take_dropped() {
    return std::exchange(dropped_before_, std::nullopt);
}

Batch AudioBuffer::take() {
    assert(!audio_.empty() && !dropped_before_);
    const auto oldest = oldest_seq();
    const FrameRange range{
        .oldest_seq = oldest,
        .newest_seq = oldest + audio_.frames() - 1,
        .oldest_at = audio_.front_received_at(),
        .newest_at = audio_.back_received_at(),
    };
    dropped_before_ = std::exchange(dropped_behind_, std::nullopt);
    return {.range = range, .audio = std::move(audio_)};
}

std::uint64_t AudioBuffer::oldest_seq() const noexcept {
    const auto behind = dropped_behind_ ? dropped_behind_->frames() : 0;
    return next_seq_ - behind - audio_.frames();
}

} // namespace stt
