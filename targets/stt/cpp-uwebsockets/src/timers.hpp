// The deadlines of one worker, over one timer of uSockets.
#pragma once

#include <libusockets.h>

#include <functional>
#include <set>

#include "config.hpp"

namespace stt {

class Timer;

/// A timer of uSockets is a file descriptor of its own, so a session has none: the loop has one, set to the next deadline.
class Timers {
 public:
  explicit Timers(us_loop_t* loop);
  ~Timers() { close(); }
  Timers(const Timers&) = delete;
  Timers& operator=(const Timers&) = delete;

  /// From then on no deadline is kept, and nothing of this keeps the loop.
  void close();

 private:
  friend class Timer;

  void run();
  /// Sets the timer of uSockets if it would be too late.
  void arm();

  us_timer_t* timer_;
  std::set<std::pair<TimePoint, Timer*>> deadlines_;
  /// What the timer of uSockets is set to.
  TimePoint armed_for_ = TimePoint::max();
  bool is_running_ = false;
};

/// One deadline. It ends with its owner, also within `act`.
class Timer {
 public:
  /// `timers` must outlive it.
  Timer(Timers& timers, std::function<void()> act) : timers_{timers}, act_{std::move(act)} {}
  ~Timer() { cancel(); }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  /// `act` is called once, at `at` or soon after. An earlier deadline of this timer is forgotten.
  void set(TimePoint at);
  void cancel();

 private:
  friend class Timers;

  Timers& timers_;
  std::function<void()> act_;
  TimePoint at_;
};

}  // namespace stt
