#include "messages.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <cmath>
#include <limits>

namespace stt {

namespace {

namespace json = boost::json;

/// The one object that `text` is; none if it is anything else.
std::optional<json::object> parse_object(std::string_view text) {
  boost::system::error_code ec;
  auto value = json::parse(json::string_view{text.data(), text.size()}, ec);
  if (ec || !value.is_object()) return std::nullopt;
  return std::move(value.get_object());
}

bool is_string(const json::value* value) { return value != nullptr && value->is_string(); }

template <class Number>
bool is_unsigned(const json::value* value) {
  if (value == nullptr || !(value->is_int64() || value->is_uint64())) return false;
  boost::system::error_code out_of_range;
  value->to_number<Number>(out_of_range);
  return !out_of_range;
}

bool is_answer(const json::object& object) {
  const auto* const rms = object.if_contains("rms");
  return object.size() == 6 && rms != nullptr && rms->is_number() && std::isfinite(rms->to_number<double>()) &&
         is_unsigned<std::uint64_t>(object.if_contains("zero_crossings")) &&
         is_unsigned<std::uint32_t>(object.if_contains("checksum")) &&
         is_unsigned<std::uint64_t>(object.if_contains("samples")) && is_string(object.if_contains("transcript")) &&
         is_unsigned<std::uint64_t>(object.if_contains("audio_bytes"));
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
  const auto* const type = object && object->size() == 1 ? object->if_contains("type") : nullptr;
  return is_string(type) && type->get_string() == "start";
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
  json::object partial{
      {"type", "partial"},
      {"oldest_frame_seq", span.oldest_seq},
      {"newest_frame_seq", span.newest_seq},
      {"frames", span.frames()},
      {"cpu_passes", cpu_passes},
      {"flush_lateness_ms", ms(span.flush_lateness)},
  };
  partial.insert(answer.begin(), answer.end());
  return json::serialize(partial);
}

std::string error_json(const Span& span, const Failure& failure, TimePoint now, std::optional<Duration> elapsed,
                       std::size_t inflight_batches, std::size_t buffer_frames) {
  const auto& traits = traits_of(failure.kind);
  json::object error{
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
  return json::serialize(error);
}

}  // namespace stt
