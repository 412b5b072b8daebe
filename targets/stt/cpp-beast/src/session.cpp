#include "session.hpp"

#include <algorithm>
#include <utility>

namespace stt {

Session::Session(const SessionSettings& settings, Duration jitter, TimePoint now, Environment environment)
    : settings_{settings}, jitter_{jitter}, environment_{environment},
      phase_{AwaitingStart{now + settings.start_timeout}},
      audio_{settings.overflow_policy, settings.buffer_frames_max, environment.blocks} {}

Verdict Session::on_text(TimePoint now, std::string_view text) {
    if (std::holds_alternative<Draining>(phase_)) {
        return {};
    }
    if (std::holds_alternative<AwaitingStart>(phase_) && is_start(text)) {
        phase_ = Streaming{FlushSchedule{now + jitter_, settings_.flush_interval}};
        return {};
    }
    return std::unexpected{CloseReason::protocol};
}

Verdict Session::on_binary(TimePoint now, std::span<const std::byte> payload) {
    if (std::holds_alternative<Draining>(phase_)) {
        return {};
    }
    if (std::holds_alternative<AwaitingStart>(phase_)) {
        return std::unexpected{CloseReason::protocol};
    }
    if (payload.size() != frame_bytes) {
        return std::unexpected{CloseReason::frame_size};
    }
    switch (audio_.push(now, payload.first<frame_bytes>())) {
    case AudioBuffer::Pushed::refused:
        return std::unexpected{CloseReason::overflow};
    case AudioBuffer::Pushed::dropped:
        environment_.metrics.frames_dropped.add(1);
        break;
    case AudioBuffer::Pushed::kept:
        break;
    }
    environment_.metrics.frames.add(1);
    return {};
}

TimePoint Session::wake_at() const {
    struct DueAt {
        TimePoint operator()(const AwaitingStart& phase) const { return phase.until; }
        TimePoint operator()(const Streaming& phase) const { return phase.schedule.next(); }
        TimePoint operator()(const Draining& phase) const { return phase.until; }
    };
    const auto due_at = std::visit(DueAt{}, phase_);
    return in_flight_ ? std::min(due_at, in_flight_->deadline) : due_at;
}

Verdict Session::on_wake(TimePoint now) {
    if (in_flight_ && in_flight_->deadline <= now) {
        on_answer(now, std::unexpected{Failure::timeout()});
    }
    if (const auto* waiting = std::get_if<AwaitingStart>(&phase_); waiting != nullptr && waiting->until <= now) {
        return std::unexpected{CloseReason::protocol};
    }
    if (const auto* draining = std::get_if<Draining>(&phase_); draining != nullptr && draining->until <= now) {
        return std::unexpected{CloseReason::going_away};
    }
    if (auto* streaming = std::get_if<Streaming>(&phase_)) {
        if (const auto scheduled = streaming->schedule.take_due(now)) {
            tick(now, now - *scheduled);
        }
    }
    return {};
}

void Session::on_answer(TimePoint now, const InferenceResult& result) {
    if (!in_flight_) {
        return;
    }
    const auto range = in_flight_->range;
    const auto elapsed = now - in_flight_->sent_at;
    const auto lateness = in_flight_->flush_lateness;
    in_flight_.reset();
    environment_.metrics.observe_inference(elapsed);
    if (result) {
        environment_.metrics.partials.add(1);
        outbox_.push(partial_json(range, *result, settings_.echo, lateness));
    } else {
        report(result.error(), range, now, lateness, elapsed);
    }
}

bool Session::is_drained() const {
    return std::holds_alternative<Draining>(phase_) && !in_flight_ && outbox_.unsent() == 0;
}

/// Names the dropped frames, then makes one request of the whole buffer, unless something is in the way.
void Session::tick(TimePoint now, Duration lateness) {
    if (!audio_.is_waiting()) {
        return;
    }
    auto& metrics = environment_.metrics;
    if (in_flight_) {
        return metrics.count_deferral(Deferral::inflight);
    }
    if (outbox_.unsent() >= settings_.outbox_messages_max) {
        return metrics.count_deferral(Deferral::outbox);
    }
    // They are older than the buffer and newer than the last batch, so here is their place in the order.
    if (const auto dropped = audio_.take_dropped()) {
        report(Failure::overflow(), *dropped, now, lateness, std::nullopt);
    }
    if (audio_.frames() == 0) {
        return;
    }
    auto job = environment_.jobs.try_acquire();
    if (!job) {
        return metrics.count_deferral(Deferral::jobs);
    }
    auto batch = audio_.take();
    metrics.observe_flush(batch.range.frames(), lateness);
    in_flight_.emplace(InFlight{
        .job = std::move(*job),
        .call = environment_.calls.start_call(std::move(batch.audio)),
        .range = batch.range,
        .sent_at = now,
        .deadline = now + settings_.inference_timeout,
        .flush_lateness = lateness,
    });
}

/// Names frames that will have no transcript. Like a partial it is written only while no request is in flight, so that it
/// follows everything that is older.
void Session::report(const Failure& failure, const FrameRange& range, TimePoint now, Duration lateness,
                     std::optional<Duration> elapsed) {
    environment_.metrics.count_error(failure.kind);
    outbox_.push(error_json(failure, {
                                         .range = range,
                                         .oldest_age = now - range.oldest_at,
                                         .newest_age = now - range.newest_at,
                                         .flush_lateness = lateness,
                                         .inference_elapsed = elapsed,
                                         .inflight_batches = 0,
                                         .buffered_frames = audio_.frames(),
                                     }));
}

} // namespace stt
