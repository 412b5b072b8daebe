// The session's core: schedule, buffer, ledger, overflow. No socket and no timer: the time is passed in.
#pragma once

#include <cassert>
#include <deque>
#include <iterator>
#include <span>
#include <vector>

#include "messages.hpp"

namespace stt {

enum class Offer : std::uint8_t { kept, dropped, refused };

/// Why a tick did nothing.
enum class Deferral : std::uint8_t { inflight, jobs, outbox };

/// What a tick asks its caller to do, in this order.
struct Tick {
  std::optional<Deferral> deferral;
  /// Dropped frames to be named now.
  std::optional<Span> dropped;
  /// There is audio to send: call `flush`, or leave it to the next tick.
  bool is_ready = false;
};

struct Batch {
  Span span;
  std::vector<std::uint8_t> pcm;
};

class Session {
 public:
  /// `origin` is the start plus the jitter.
  Session(const Config& config, TimePoint origin) : config_{config}, next_tick_{origin + config.flush_interval} {}

  TimePoint next_tick() const { return next_tick_; }
  std::size_t buffer_frames() const { return received_at_.size(); }
  bool is_in_flight() const { return is_in_flight_; }
  void answered() { is_in_flight_ = false; }

  /// Takes the next frame, and the number that goes with it.
  Offer offer(std::span<const std::uint8_t> pcm, TimePoint now) {
    const bool is_full = received_at_.size() >= config_.max_buffer_frames;
    if (is_full && config_.overflow_policy == OverflowPolicy::close) return Offer::refused;
    ++last_seq_;
    if (is_full && config_.overflow_policy == OverflowPolicy::drop_newest) {
      extend(dropped_behind_, last_seq_, now);
      return Offer::dropped;
    }
    if (is_full) drop_oldest();
    pcm_.insert(pcm_.end(), pcm.begin(), pcm.end());
    received_at_.push_back(now);
    return is_full ? Offer::dropped : Offer::kept;
  }

  /// Runs the tick that is due. `outbox_room` is how many messages may be sent before the outbox is full.
  Tick tick(TimePoint now, std::ptrdiff_t outbox_room) {
    tick_due_ = next_tick_;
    // Ticks that were missed are passed over; the later ones stay where they are.
    next_tick_ += ((now - next_tick_) / config_.flush_interval + 1) * config_.flush_interval;
    const bool has_audio = !received_at_.empty();
    Tick tick;
    if (is_in_flight_) {
      if (has_audio) tick.deferral = Deferral::inflight;
      return tick;
    }
    if (dropped_before_ && outbox_room > 0) {
      tick.dropped = std::exchange(dropped_before_, std::nullopt);
      tick.dropped->flush_lateness = now - tick_due_;
      --outbox_room;
    }
    tick.is_ready = has_audio && outbox_room > 0;
    if (has_audio && !tick.is_ready) tick.deferral = Deferral::outbox;
    return tick;
  }

  /// The whole buffer as one batch, after a tick that was ready. It is in flight until `answered`.
  Batch flush(TimePoint now) {
    assert(!is_in_flight_ && !received_at_.empty() && !dropped_before_);
    is_in_flight_ = true;
    const auto newest_seq = dropped_behind_ ? dropped_behind_->oldest_seq - 1 : last_seq_;
    const auto oldest_seq = newest_seq - received_at_.size() + 1;
    const Span span{oldest_seq, newest_seq, received_at_.front(), received_at_.back(), now - tick_due_};
    pcm_.erase(pcm_.begin(), std::next(pcm_.begin(), std::exchange(pcm_begin_, 0)));
    received_at_.clear();
    dropped_before_ = std::exchange(dropped_behind_, std::nullopt);
    return {span, std::exchange(pcm_, {})};
  }

 private:
  static void extend(std::optional<Span>& span, std::uint64_t seq, TimePoint at) {
    if (!span) span = Span{seq, seq, at, at};
    span->newest_seq = seq;
    span->newest_at = at;
  }

  /// Makes room for the frame `last_seq_`, which is not in the buffer yet.
  void drop_oldest() {
    extend(dropped_before_, last_seq_ - received_at_.size(), received_at_.front());
    received_at_.pop_front();
    pcm_begin_ += frame_bytes;
    // Moved only when half of the vector is dropped: a full buffer drops a frame with each that comes.
    if (pcm_begin_ >= std::ssize(pcm_) / 2)
      pcm_.erase(pcm_.begin(), std::next(pcm_.begin(), std::exchange(pcm_begin_, 0)));
  }

  const Config& config_;
  TimePoint next_tick_;
  TimePoint tick_due_;
  std::uint64_t last_seq_ = 0;
  /// The buffer: samples from `pcm_begin_` on, and when each frame came.
  std::vector<std::uint8_t> pcm_;
  std::ptrdiff_t pcm_begin_ = 0;
  std::deque<TimePoint> received_at_;
  // Frames dropped and not named yet: those older than the buffer, and those newer (drop_newest). Each is one range,
  // because nothing is kept between two drops on the same side.
  std::optional<Span> dropped_before_;
  std::optional<Span> dropped_behind_;
  bool is_in_flight_ = false;
};

}  // namespace stt
