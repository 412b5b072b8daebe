// A session under a simulated clock: rule by rule, and the ledger under random histories.

#include <array>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "session.hpp"

namespace stt {
namespace {

using std::chrono::milliseconds;
using Texts = std::vector<std::string>;

/// Plays the part of the connection: sends frames, ticks, answers, and lets the client read or not.
class Simulation {
 public:
  explicit Simulation(std::size_t max_buffer_frames = 500, OverflowPolicy policy = OverflowPolicy::drop_oldest)
      : config_{config_with(max_buffer_frames, policy)} {}

  TimePoint at(int ms) const { return begin_ + milliseconds{ms}; }
  std::uint64_t frames_sent() const { return frames_sent_; }
  std::uint64_t named() const { return named_; }
  std::uint64_t overflows() const { return overflows_; }
  std::uint64_t drops() const { return drops_; }
  const Texts& messages() const { return messages_; }
  Session& core() { return session_; }
  void let_client_read(bool reads) { client_reads_ = reads; }

  Offer send() {
    const auto offer = session_.offer(frame_number(frames_sent_ + 1), now_);
    frames_sent_ += offer == Offer::refused ? 0 : 1;
    drops_ += offer == Offer::dropped ? 1 : 0;
    return offer;
  }

  void send(int count) {
    for (int index = 0; index < count; ++index) {
      ASSERT_NE(send(), Offer::refused);
    }
  }

  /// Lets time pass; the session is woken at each tick. No job is to be had where `has_jobs` is false.
  void run_until_ms(int ms, bool has_jobs = true) {
    while (session_.next_tick() <= at(ms)) {
      now_ = session_.next_tick();
      tick(has_jobs);
    }
    now_ = std::max(now_, at(ms));
  }

  Tick tick_at_ms(int ms) {
    now_ = at(ms);
    return tick(true);
  }

  void answer() {
    if (in_flight_) {
      name("partial", in_flight_->span);
      in_flight_.reset();
      session_.answered();
    }
  }

  const std::optional<Batch>& in_flight() const { return in_flight_; }

  static std::array<std::uint8_t, frame_bytes> frame_number(std::uint64_t seq) {
    std::array<std::uint8_t, frame_bytes> frame{};
    for (std::size_t index = 0; index < frame.size(); ++index) {
      frame[index] = static_cast<std::uint8_t>(seq >> (8 * (index % 4)));
    }
    return frame;
  }

 private:
  static Config config_with(std::size_t max_buffer_frames, OverflowPolicy policy) {
    auto config = read_config([](const char*) { return nullptr; });
    config.max_buffer_frames = max_buffer_frames;
    config.overflow_policy = policy;
    return config;
  }

  Tick tick(bool has_jobs) {
    const auto room = client_reads_ ? 4 : static_cast<std::ptrdiff_t>(unread_left_);
    const auto tick = session_.tick(now_, room);
    if (tick.dropped) {
      overflows_ += tick.dropped->frames();
      name("overflow", *tick.dropped);
    }
    if (tick.is_ready && has_jobs) {
      EXPECT_FALSE(in_flight_) << "one request at a time";
      in_flight_ = session_.flush(now_);
      check_audio(*in_flight_);
    }
    return tick;
  }

  static void check_audio(const Batch& batch) {
    std::vector<std::uint8_t> expected;
    for (auto seq = batch.span.oldest_seq; seq <= batch.span.newest_seq; ++seq) {
      const auto frame = frame_number(seq);
      expected.insert(expected.end(), frame.begin(), frame.end());
    }
    EXPECT_TRUE(batch.pcm == expected) << batch.span.oldest_seq << "-" << batch.span.newest_seq;
  }

  void name(const std::string& what, const Span& span) {
    EXPECT_EQ(span.oldest_seq, named_ + 1) << what;
    EXPECT_GE(span.newest_seq, span.oldest_seq);
    EXPECT_LE(span.oldest_at, span.newest_at);
    named_ = span.newest_seq;
    unread_left_ -= client_reads_ || unread_left_ == 0 ? 0 : 1;
    messages_.push_back(what + " " + std::to_string(span.oldest_seq) + "-" + std::to_string(span.newest_seq));
  }

  TimePoint begin_{std::chrono::hours{1}};
  TimePoint now_ = begin_;
  Config config_;
  Session session_{config_, begin_ + milliseconds{300}};
  std::optional<Batch> in_flight_;
  bool client_reads_ = true;
  std::size_t unread_left_ = 2;
  std::uint64_t frames_sent_ = 0;
  std::uint64_t drops_ = 0;
  std::uint64_t overflows_ = 0;
  std::uint64_t named_ = 0;
  Texts messages_;
};

TEST(Session, TicksKeepTheirScheduleAndLatenessIsTold) {
  Simulation simulation;
  simulation.send(3);
  EXPECT_EQ(simulation.core().next_tick(), simulation.at(1300));
  simulation.tick_at_ms(1307);
  ASSERT_TRUE(simulation.in_flight());
  EXPECT_EQ(simulation.in_flight()->span.flush_lateness, milliseconds{7});
  EXPECT_EQ(simulation.core().next_tick(), simulation.at(2300));
}

TEST(Session, OverdueTicksAreOneFlush) {
  Simulation simulation;
  simulation.send(1);
  simulation.tick_at_ms(4500);
  EXPECT_EQ(simulation.core().next_tick(), simulation.at(5300));
  EXPECT_EQ(simulation.in_flight()->span.flush_lateness, milliseconds{3200});
}

TEST(Session, AnEmptyBufferMakesNoRequestAndDefersNothing) {
  Simulation simulation;
  EXPECT_FALSE(simulation.tick_at_ms(1300).is_ready);
  simulation.send(1);
  simulation.tick_at_ms(2300);
  EXPECT_FALSE(simulation.tick_at_ms(3300).deferral) << "with a request in flight";
}

TEST(Session, ATickWithARequestInFlightLeavesTheAudioForTheNext) {
  Simulation simulation;
  simulation.send(1);
  simulation.run_until_ms(1300);
  simulation.send(2);
  EXPECT_EQ(simulation.tick_at_ms(2300).deferral, Deferral::inflight);
  simulation.answer();
  EXPECT_FALSE(simulation.in_flight()) << "an answer is no tick";
  simulation.run_until_ms(3300);
  simulation.answer();
  EXPECT_EQ(simulation.messages(), (Texts{"partial 1-1", "partial 2-3"}));
}

TEST(Session, WithoutAJobTheAudioWaits) {
  Simulation simulation;
  simulation.send(1);
  simulation.run_until_ms(2300, false);
  EXPECT_FALSE(simulation.core().is_in_flight());
  simulation.run_until_ms(3300);
  EXPECT_TRUE(simulation.core().is_in_flight());
}

TEST(Session, AFullOutboxLeavesTheBufferToTheOverflowPolicy) {
  Simulation simulation{10};
  simulation.let_client_read(false);
  for (int second = 1; second <= 2; ++second) {
    simulation.send(1);
    simulation.run_until_ms(second * 1000 + 300);
    simulation.answer();
  }
  simulation.send(13);
  EXPECT_EQ(simulation.tick_at_ms(3300).deferral, Deferral::outbox);
  EXPECT_EQ(simulation.drops(), 3U);
  simulation.let_client_read(true);
  simulation.run_until_ms(4300);
  simulation.answer();
  EXPECT_EQ(simulation.messages(), (Texts{"partial 1-1", "partial 2-2", "overflow 3-5", "partial 6-15"}));
}

TEST(Session, DropsAreNamedAfterTheBatchBeforeThem) {
  Simulation simulation{5};
  simulation.send(5);
  simulation.run_until_ms(1300);
  simulation.send(8);
  simulation.run_until_ms(2300);
  EXPECT_TRUE(simulation.messages().empty()) << "the drop waits for the batch that is older";
  simulation.answer();
  simulation.run_until_ms(3300);
  simulation.answer();
  EXPECT_EQ(simulation.messages(), (Texts{"partial 1-5", "overflow 6-8", "partial 9-13"}));
}

TEST(Session, DropNewestNamesWhatFollowsTheBuffer) {
  Simulation simulation{5, OverflowPolicy::drop_newest};
  simulation.send(8);
  simulation.run_until_ms(1300);
  simulation.send(1);
  simulation.answer();
  simulation.run_until_ms(2300);
  simulation.answer();
  EXPECT_EQ(simulation.messages(), (Texts{"partial 1-5", "overflow 6-8", "partial 9-9"}));
}

TEST(Session, TheClosePolicyRefuses) {
  Simulation simulation{5, OverflowPolicy::close};
  simulation.send(5);
  EXPECT_EQ(simulation.send(), Offer::refused);
}

TEST(Session, EveryAcceptedFrameIsNamedOnceAndInOrder) {
  for (std::uint64_t seed = 1; seed <= 1000 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random{seed};
    const auto draw = [&random](int min, int max) { return std::uniform_int_distribution<>{min, max}(random); };
    const auto policy = draw(0, 1) == 0 ? OverflowPolicy::drop_oldest : OverflowPolicy::drop_newest;
    Simulation simulation{static_cast<std::size_t>(draw(1, 80)), policy};
    int clock_ms = 0;
    for (int events = draw(1, 120); events > 0; --events) {
      switch (draw(0, 5)) {
        case 0:
        case 1:
          simulation.send(draw(1, 40));
          break;
        case 2:
        case 3:
          clock_ms += draw(0, 1500);
          simulation.run_until_ms(clock_ms, draw(0, 3) != 0);
          break;
        case 4:
          simulation.answer();
          break;
        default:
          simulation.let_client_read(draw(0, 1) == 0);
      }
    }
    simulation.let_client_read(true);
    for (int round = 0; round < 4; ++round) {
      clock_ms += 1300;
      simulation.run_until_ms(clock_ms);
      simulation.answer();
    }
    EXPECT_EQ(simulation.named(), simulation.frames_sent());
    EXPECT_EQ(simulation.overflows(), simulation.drops());
  }
}

}  // namespace
}  // namespace stt
