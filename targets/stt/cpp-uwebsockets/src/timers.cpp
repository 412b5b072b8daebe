#include "timers.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace stt {

Timers::Timers(us_loop_t* loop) : timer_{us_create_timer(loop, 0, sizeof(Timers*))} {
  if (timer_ == nullptr) throw std::bad_alloc{};
  *static_cast<Timers**>(us_timer_ext(timer_)) = this;
}

void Timers::close() {
  if (timer_ != nullptr) us_timer_close(std::exchange(timer_, nullptr));
}

void Timers::run() {
  armed_for_ = TimePoint::max();
  is_running_ = true;
  for (const auto now = Clock::now(); !deadlines_.empty() && deadlines_.begin()->first <= now;) {
    auto* const due = deadlines_.extract(deadlines_.begin()).value().second;
    due->act_();  // may delete `due`
  }
  is_running_ = false;
  arm();
}

void Timers::arm() {
  if (timer_ == nullptr || is_running_ || deadlines_.empty() || deadlines_.begin()->first >= armed_for_) return;
  armed_for_ = deadlines_.begin()->first;
  // Rounded up, because one that is early would have to be set again; and 0 would mean never.
  const auto wait = std::chrono::ceil<std::chrono::milliseconds>(armed_for_ - Clock::now());
  const auto run = [](us_timer_t* timer) { (*static_cast<Timers**>(us_timer_ext(timer)))->run(); };
  us_timer_set(timer_, run, static_cast<int>(std::max<std::int64_t>(wait.count(), 1)), 0);
}

void Timer::set(TimePoint at) {
  cancel();
  at_ = at;
  timers_.deadlines_.emplace(at, this);
  timers_.arm();
}

void Timer::cancel() { timers_.deadlines_.erase({at_, this}); }

}  // namespace stt
