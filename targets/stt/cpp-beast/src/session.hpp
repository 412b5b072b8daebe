// A session without I/O: frames, times and answers go in, requests and messages come out.
//
// It has no clock, no socket and no event loop, so that every rule of the contract can be tested with a simulated clock.
// The rim around it is `SessionConnection`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "audio_buffer.hpp"
#include "clock.hpp"
#include "failure.hpp"
#include "flush_schedule.hpp"
#include "limit.hpp"
#include "messages.hpp"
#include "metrics.hpp"

namespace stt {

/// What a session is configured with.
struct SessionSettings {
    Duration flush_interval = std::chrono::seconds{1};
    Duration start_timeout = std::chrono::seconds{10};
    Duration inference_timeout = std::chrono::seconds{5};
    std::size_t buffer_frames_max = 500;
    OverflowPolicy overflow_policy = OverflowPolicy::drop_oldest;
    std::size_t outbox_messages_max = 4;
    Echo echo;
};

/// Why the gateway ends a session; the value is the WebSocket close code.
enum class CloseReason : std::uint16_t {
    going_away = 1001,
    protocol = 1002,
    frame_size = 1003,
    overflow = 1013,
};

/// Goes on, or must be closed.
using Verdict = std::expected<void, CloseReason>;

/// A request on its way. It lives exactly as long as this handle: destroying the handle gives the request up.
class PendingCall {
public:
    PendingCall() = default;
    PendingCall(const PendingCall&) = delete;
    PendingCall& operator=(const PendingCall&) = delete;
    PendingCall(PendingCall&&) = delete;
    PendingCall& operator=(PendingCall&&) = delete;
    virtual ~PendingCall() = default;
};

/// Sends a session's batches. The answer comes back through `Session::on_answer`, never from within `start_call`.
class CallStarter {
public:
    CallStarter() = default;
    CallStarter(const CallStarter&) = delete;
    CallStarter& operator=(const CallStarter&) = delete;
    CallStarter(CallStarter&&) = delete;
    CallStarter& operator=(CallStarter&&) = delete;
    virtual ~CallStarter() = default;

    [[nodiscard]] virtual std::unique_ptr<PendingCall> start_call(AudioChain audio) = 0;
};

/// Messages that the client has not taken. The first one may be on its way into the socket; it counts until the socket
/// has taken its last byte.
class Outbox {
public:
    void push(std::string message) { messages_.push_back(std::move(message)); }

    [[nodiscard]] std::size_t unsent() const noexcept { return messages_.size(); }

    /// The next message to write, unless one is being written. It stays where it is until `sent`.
    [[nodiscard]] const std::string* begin_sending() noexcept {
        if (sending_ || messages_.empty()) {
            return nullptr;
        }
        sending_ = true;
        return &messages_.front();
    }

    void sent() {
        messages_.pop_front();
        sending_ = false;
    }

private:
    /// A list, for a message must not move while it is being written.
    std::list<std::string> messages_;
    bool sending_ = false;
};

class Session {
public:
    /// What a session shares with the others of its thread, or of the gateway.
    struct Environment {
        BlockPool& blocks;
        Limit& jobs;
        Metrics& metrics;
        CallStarter& calls;
    };

    /// A session that was opened at `now` and waits for its start message. `jitter` is its share of
    /// FLUSH_PHASE_JITTER_MS.
    Session(const SessionSettings& settings, Duration jitter, TimePoint now, Environment environment);

    [[nodiscard]] Verdict on_text(TimePoint now, std::string_view text);

    /// A binary message of any size.
    [[nodiscard]] Verdict on_binary(TimePoint now, std::span<const std::byte> payload);

    /// When `on_wake` is due next.
    [[nodiscard]] TimePoint wake_at() const;

    /// Does what is due: gives up the request, ends the wait for the start message, ticks.
    [[nodiscard]] Verdict on_wake(TimePoint now);

    /// The request in flight has ended.
    void on_answer(TimePoint now, const InferenceResult& result);

    [[nodiscard]] Outbox& outbox() noexcept { return outbox_; }
    [[nodiscard]] const AudioBuffer& audio() const noexcept { return audio_; }

    /// The gateway shuts down: only the request in flight is still answered, if that comes before `until`.
    void drain(TimePoint until) { phase_ = Draining{until}; }

    /// Whether a draining session owes nothing any more.
    [[nodiscard]] bool is_drained() const;

    /// The session has ended: gives up the request in flight.
    void abandon() noexcept { in_flight_.reset(); }

private:
    struct AwaitingStart {
        TimePoint until;
    };
    struct Streaming {
        FlushSchedule schedule;
    };
    struct Draining {
        TimePoint until;
    };

    /// The request and the batch that it carries; whoever holds the one holds the other.
    struct InFlight {
        Permit job;
        std::unique_ptr<PendingCall> call;
        FrameRange range;
        TimePoint sent_at;
        TimePoint deadline;
        Duration flush_lateness;
    };

    void tick(TimePoint now, Duration lateness);
    void report(const Failure& failure, const FrameRange& range, TimePoint now, Duration lateness,
                std::optional<Duration> elapsed);

    const SessionSettings& settings_;
    Duration jitter_;
    Environment environment_;
    std::variant<AwaitingStart, Streaming, Draining> phase_;
    AudioBuffer audio_;
    Outbox outbox_;
    /// The only place for a request: there is at most one in flight because there is no room for another.
    std::optional<InFlight> in_flight_;
};

} // namespace stt
