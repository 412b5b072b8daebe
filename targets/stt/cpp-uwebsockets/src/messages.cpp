#include "messages.hpp"

#include <limits>

namespace stt {

namespace {

using nlohmann::json;

/// The one object that `text` is; none if it is anything else, or has a field twice.
std::optional<json> parse_object(std::string_view text) {
  // The parser skips a byte order mark, and takes a NUL for the end. JSON has neither outside of strings, and no NUL there.
  if (text.starts_with('\xEF') || text.contains('\0')) return std::nullopt;
  std::size_t fields = 0;
  const auto count_fields = [&fields](int /*depth*/, json::parse_event_t event, const json& /*parsed*/) {
    if (event == json::parse_event_t::key) ++fields;
    return true;
  };
  auto value = json::parse(text, count_fields, false);
  // The object keeps the last of repeated fields. Objects within it are no messages either, so all keys are counted.
  if (!value.is_object() || value.size() != fields) return std::nullopt;
  return value;
}

bool is_unsigned(const json& value, std::uint64_t max = std::numeric_limits<std::uint64_t>::max()) {
  return value.is_number_unsigned() && value.get<std::uint64_t>() <= max;
}

bool is_answer(const json& object) {
  // A missing field is null, which no check accepts.
  static const json missing;
  const auto field = [&object](const char* name) -> const json& {
    const auto found = object.find(name);
    return found == object.end() ? missing : *found;
  };
  return object.size() == 6 && field("rms").is_number() && is_unsigned(field("zero_crossings")) &&
         is_unsigned(field("checksum"), std::numeric_limits<std::uint32_t>::max()) && is_unsigned(field("samples")) &&
         field("transcript").is_string() && is_unsigned(field("audio_bytes"));
}

/// What a status other than 200 stands for.
Kind kind_of(std::uint16_t status) {
  if (status == 429) return Kind::http_429;
  if (status >= 500 && status <= 599) return Kind::http_5xx;
  // The contract names no status but these and 4xx; the body of another is not the strict answer.
  return status >= 400 && status <= 499 ? Kind::http_4xx : Kind::parse_error;
}

double ms(Duration duration) { return std::chrono::duration<double, std::milli>{duration}.count(); }

}  // namespace

bool is_start(std::string_view text) {
  const auto object = parse_object(text);
  return object && *object == json{{"type", "start"}};
}

std::optional<std::uint16_t> refusal_of(bool is_text, std::size_t size) {
  if (is_text) return 1002;
  return size == frame_bytes ? std::nullopt : std::optional<std::uint16_t>{1003};
}

InferenceResult read_answer(std::uint16_t status, std::string_view body) {
  if (status != 200)
    return std::unexpected{Failure{kind_of(status), "the inference server answered " + std::to_string(status), status}};
  auto object = parse_object(body);
  if (!object || !is_answer(*object))
    return std::unexpected{Failure{Kind::parse_error, "the answer is not the strict JSON", status}};
  return std::move(*object);
}

std::string partial_json(const Span& span, const InferenceAnswer& answer, std::uint32_t cpu_passes) {
  json partial{
      {"type", "partial"},
      {"oldest_frame_seq", span.oldest_seq},
      {"newest_frame_seq", span.newest_seq},
      {"frames", span.frames()},
      {"cpu_passes", cpu_passes},
      {"flush_lateness_ms", ms(span.flush_lateness)},
  };
  partial.update(answer);
  return partial.dump();
}

std::string error_json(const Span& span, const Failure& failure, TimePoint now, std::optional<Duration> elapsed,
                       std::size_t inflight_batches, std::size_t buffer_frames) {
  const auto& traits = traits_of(failure.kind);
  json error{
      {"type", "error"},
      {"stage", traits.stage},
      {"kind", traits.name},
      {"message", failure.message},
      {"oldest_frame_seq", span.oldest_seq},
      {"newest_frame_seq", span.newest_seq},
      {"frames", span.frames()},
      {"audio_bytes", span.frames() * frame_bytes},
      {"oldest_age_ms", ms(now - span.oldest_at)},
      {"newest_age_ms", ms(now - span.newest_at)},
      {"flush_lateness_ms", ms(span.flush_lateness)},
      {"inference_elapsed_ms", nullptr},
      {"inflight_gateway_batches", inflight_batches},
      {"gateway_buffer_frames", buffer_frames},
      {"inference_status", nullptr},
      {"retryable", traits.is_retryable},
  };
  if (elapsed) error["inference_elapsed_ms"] = ms(*elapsed);
  if (failure.status) error["inference_status"] = *failure.status;
  return error.dump();
}

}  // namespace stt
