// The JSON that crosses the WebSocket and the answer of the inference server, strict in what is accepted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "clock.hpp"
#include "failure.hpp"

namespace stt {

/// One frame: 20 ms of 16 kHz, mono, 16-bit PCM.
inline constexpr std::size_t frame_bytes = 640;

/// Whether `text` is exactly the start message, however it is spaced or escaped.
[[nodiscard]] bool is_start(std::string_view text);

/// What the inference server says about a batch: exactly these fields.
struct InferenceAnswer {
    double rms = 0;
    std::uint64_t zero_crossings = 0;
    std::uint32_t checksum = 0;
    std::uint64_t samples = 0;
    std::string transcript;
    std::uint64_t audio_bytes = 0;
};

using InferenceResult = std::expected<InferenceAnswer, Failure>;

/// Reads the body of a 200: one object with each of the six fields once and of its type, or a parse error.
[[nodiscard]] InferenceResult parse_answer(std::string_view body);

/// A contiguous range of frames, and when the gateway received its ends.
struct FrameRange {
    std::uint64_t oldest_seq = 0;
    std::uint64_t newest_seq = 0;
    TimePoint oldest_at;
    TimePoint newest_at;

    [[nodiscard]] std::uint64_t frames() const noexcept { return newest_seq - oldest_seq + 1; }
};

/// The configured values that every `partial` repeats.
struct Echo {
    std::uint32_t cpu_passes = 4;
};

/// The `partial` for an answered batch.
[[nodiscard]] std::string partial_json(const FrameRange& range, const InferenceAnswer& answer, const Echo& echo,
                                       Milliseconds flush_lateness);

/// What an `error` says beside the failure itself.
struct ErrorContext {
    FrameRange range;
    Milliseconds oldest_age;
    Milliseconds newest_age;
    Milliseconds flush_lateness;
    std::optional<Milliseconds> inference_elapsed;
    std::uint64_t inflight_batches = 0;
    std::uint64_t buffered_frames = 0;
};

/// The `error` for frames that will have no transcript.
[[nodiscard]] std::string error_json(const Failure& failure, const ErrorContext& context);

} // namespace stt
