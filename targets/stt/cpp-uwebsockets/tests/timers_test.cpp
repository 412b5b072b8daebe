// Deadlines over a real loop.

#include <App.h>

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "timers.hpp"

namespace stt {
namespace {

using std::chrono::milliseconds;

class TimersTest : public ::testing::Test {
 protected:
  static us_loop_t* loop() { return reinterpret_cast<us_loop_t*>(uWS::Loop::get()); }
  TimePoint in_ms(int ms) const { return begin_ + milliseconds{ms}; }

  /// Runs the loop until nothing keeps it.
  void run_for_ms(int ms) {
    Timer end{timers_, [this] { timers_.close(); }};
    end.set(in_ms(ms));
    uWS::Loop::get()->run();
  }

  TimePoint begin_ = Clock::now();
  Timers timers_{loop()};
  std::vector<std::string> seen_;
};

TEST_F(TimersTest, DeadlinesComeInTheirOrderAndNeverEarly) {
  Timer late{timers_, [this] {
               EXPECT_GE(Clock::now(), in_ms(30));
               seen_.emplace_back("late");
             }};
  Timer early{timers_, [this] {
                EXPECT_GE(Clock::now(), in_ms(10));
                seen_.emplace_back("early");
              }};
  Timer overdue{timers_, [this] { seen_.emplace_back("overdue"); }};
  late.set(in_ms(30));
  early.set(in_ms(10));
  overdue.set(in_ms(-5));
  run_for_ms(50);
  EXPECT_EQ(seen_, (std::vector<std::string>{"overdue", "early", "late"}));
}

TEST_F(TimersTest, ATimerHasOneDeadlineAndIsSetAnew) {
  int rounds = 0;
  std::unique_ptr<Timer> ticks;
  ticks = std::make_unique<Timer>(timers_, [&] {
    if (++rounds < 3) ticks->set(Clock::now() + milliseconds{5});
  });
  ticks->set(in_ms(1));
  ticks->set(in_ms(2));
  run_for_ms(60);
  EXPECT_EQ(rounds, 3);
}

TEST_F(TimersTest, WhatIsCancelledOrGoneDoesNotCome) {
  Timer canceled{timers_, [this] { seen_.emplace_back("canceled"); }};
  canceled.set(in_ms(5));
  canceled.cancel();
  {
    Timer gone{timers_, [this] { seen_.emplace_back("gone"); }};
    gone.set(in_ms(5));
  }
  run_for_ms(20);
  EXPECT_TRUE(seen_.empty());
}

TEST_F(TimersTest, ATimerMayEndItselfAndOthers) {
  auto other = std::make_unique<Timer>(timers_, [this] { seen_.emplace_back("other"); });
  std::unique_ptr<Timer> one;
  one = std::make_unique<Timer>(timers_, [&] {
    seen_.emplace_back("one");
    other.reset();
    one.reset();
  });
  one->set(in_ms(5));
  other->set(in_ms(5) + std::chrono::microseconds{1});
  run_for_ms(20);
  EXPECT_EQ(seen_, (std::vector<std::string>{"one"}));
}

}  // namespace
}  // namespace stt
