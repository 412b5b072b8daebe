// The JSON of the contract: what the gateway reads (a start, an inference answer) and what it writes (`partial`, `error`).
#pragma once

#include <array>
#include <expected>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "config.hpp"

namespace stt {

inline constexpr std::size_t frame_bytes = 640;

/// Why frames have no transcript.
enum class Kind : std::uint8_t { timeout, connection_reset, http_429, http_5xx, http_4xx, parse_error, overflow };

struct KindTraits {
  std::string_view stage;
  std::string_view name;
  bool is_retryable;
};

/// By `Kind`.
inline constexpr std::array kind_traits{
    KindTraits{"inference_request", "timeout", true},   KindTraits{"inference_request", "connection_reset", true},
    KindTraits{"inference_request", "http_429", true},  KindTraits{"inference_request", "http_5xx", true},
    KindTraits{"inference_request", "http_4xx", false}, KindTraits{"inference_response_parse", "parse_error", false},
    KindTraits{"input_buffer", "overflow", false},
};

constexpr const KindTraits& traits_of(Kind kind) { return kind_traits[std::to_underlying(kind)]; }

struct Failure {
  Kind kind;
  std::string message;
  /// The HTTP status of the answer, if there was one.
  std::optional<std::uint16_t> status = std::nullopt;
};

/// The six fields of a good answer, as they go into a `partial`.
using InferenceAnswer = nlohmann::json;
using InferenceResult = std::expected<InferenceAnswer, Failure>;

/// A contiguous range of frames that one message names.
struct Span {
  std::uint64_t oldest_seq;
  std::uint64_t newest_seq;
  TimePoint oldest_at;
  TimePoint newest_at;
  Duration flush_lateness{};

  std::uint64_t frames() const { return newest_seq - oldest_seq + 1; }
};

bool is_start(std::string_view text);

/// The close code for a message of a started session; none for a frame. (uWebSockets refuses what is over 64 KiB.)
std::optional<std::uint16_t> refusal_of(bool is_text, std::size_t size);

/// Reads the answer of an inference server.
InferenceResult read_answer(std::uint16_t status, std::string_view body);

std::string partial_json(const Span& span, const InferenceAnswer& answer, std::uint32_t cpu_passes);

/// `elapsed`: how long the request took, if there was one.
std::string error_json(const Span& span, const Failure& failure, TimePoint now, std::optional<Duration> elapsed,
                       std::size_t inflight_batches, std::size_t buffer_frames);

}  // namespace stt
