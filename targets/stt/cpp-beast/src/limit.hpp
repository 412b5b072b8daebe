// A counter with a ceiling, shared by all threads: sessions for admission, requests for the gateway-wide cap.
#pragma once

#include <atomic>
#include <cstddef>
#include <limits>
#include <optional>
#include <utility>

namespace stt {

class Limit;

/// One unit of a `Limit`, given back on destruction, so that no way out of a session can forget it.
class Permit {
public:
    Permit(Permit&& other) noexcept : limit_{std::exchange(other.limit_, nullptr)} {}
    Permit& operator=(Permit&& other) noexcept {
        std::swap(limit_, other.limit_);
        return *this;
    }
    Permit(const Permit&) = delete;
    Permit& operator=(const Permit&) = delete;
    inline ~Permit();

private:
    friend class Limit;
    explicit Permit(Limit& limit) noexcept : limit_{&limit} {}

    Limit* limit_;
};

/// Taken about once per flush, never per frame.
class Limit {
public:
    /// A `max` of 0 is no limit.
    explicit Limit(std::size_t max) noexcept : max_{max == 0 ? std::numeric_limits<std::size_t>::max() : max} {}

    [[nodiscard]] std::optional<Permit> try_acquire() noexcept {
        // Relaxed throughout: the count guards no other memory.
        auto in_use = in_use_.load(std::memory_order_relaxed);
        while (in_use < max_) {
            if (in_use_.compare_exchange_weak(in_use, in_use + 1, std::memory_order_relaxed)) {
                return Permit{*this};
            }
        }
        return std::nullopt;
    }

    [[nodiscard]] std::size_t in_use() const noexcept { return in_use_.load(std::memory_order_relaxed); }

private:
    friend class Permit;

    std::atomic<std::size_t> in_use_ = 0;
    std::size_t max_;
};

Permit::~Permit() {
    if (limit_ != nullptr) {
        limit_->in_use_.fetch_sub(1, std::memory_order_relaxed);
    }
}

} // namespace stt
