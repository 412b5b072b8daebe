// A count shared by all threads: sessions for admission, requests for the gateway-wide cap.
#pragma once

#include <atomic>
#include <memory>

namespace stt {

/// A counter with a ceiling; a `max` of 0 is none.
class Limit {
  struct GiveBack {
    void operator()(Limit* limit) const { --limit->in_use_; }
  };

 public:
  /// One unit, given back on destruction, so that no way out of a session can forget it. Null: there is none left.
  using Permit = std::unique_ptr<Limit, GiveBack>;

  explicit Limit(std::size_t max) : max_{max} {}

  Permit try_acquire() {
    auto in_use = in_use_.load();
    while (max_ == 0 || in_use < max_)
      if (in_use_.compare_exchange_weak(in_use, in_use + 1)) return Permit{this};
    return nullptr;
  }

  std::size_t in_use() const { return in_use_; }

 private:
  std::atomic<std::size_t> in_use_ = 0;
  std::size_t max_;
};

}  // namespace stt
