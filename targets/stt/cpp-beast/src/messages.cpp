#include "messages.hpp"

#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include <simdjson.h>

#include "json_writer.hpp"

namespace stt {

namespace {

namespace ondemand = simdjson::ondemand;

/// simdjson reads a little beyond the end of its input, so the input is copied to where there is room; and a parser keeps
/// its memory for the next document.
class JsonReader {
public:
    /// The document, which holds until the next call; `doc` is left alone on an error.
    simdjson::error_code read(std::string_view json, ondemand::document& doc) {
        if (padded_.size() < json.size() + simdjson::SIMDJSON_PADDING) {
            padded_.resize(json.size() + simdjson::SIMDJSON_PADDING);
        }
        std::memcpy(padded_.data(), json.data(), json.size());
        std::memset(padded_.data() + json.size(), ' ', simdjson::SIMDJSON_PADDING);
        return parser_.iterate(padded_.data(), json.size(), padded_.size()).get(doc);
    }

private:
    ondemand::parser parser_;
    std::vector<char> padded_;
};

JsonReader& json_reader() {
    thread_local JsonReader reader;
    return reader;
}

/// Calls `take(name, value)` for each field of the one object that `json` must be.
template <class Take> simdjson::error_code for_each_field(std::string_view json, Take take) {
    ondemand::document doc;
    if (const auto error = json_reader().read(json, doc)) {
        return error;
    }
    ondemand::object object;
    if (const auto error = doc.get_object().get(object)) {
        return error;
    }
    for (auto field : object) {
        std::string_view name;
        if (const auto error = field.unescaped_key().get(name)) {
            return error;
        }
        if (const auto error = take(name, field.value())) {
            return error;
        }
    }
    // Nothing may follow: then there is no location any more.
    return doc.current_location().error() == simdjson::OUT_OF_BOUNDS ? simdjson::SUCCESS : simdjson::TRAILING_CONTENT;
}

simdjson::error_code get_u32(simdjson::simdjson_result<ondemand::value> value, std::uint32_t& target) {
    std::uint64_t wide = 0;
    if (const auto error = value.get(wide)) {
        return error;
    }
    if (wide > std::numeric_limits<std::uint32_t>::max()) {
        return simdjson::NUMBER_OUT_OF_RANGE;
    }
    target = static_cast<std::uint32_t>(wide);
    return simdjson::SUCCESS;
}

} // namespace

bool is_start(std::string_view text) {
    bool started = false;
    const auto error = for_each_field(text, [&started](std::string_view name, auto value) {
        std::string_view type;
        if (const auto failed = value.get(type)) {
            return failed;
        }
        // A second "type" is refused like a field that nobody knows.
        if (started || name != "type" || type != "start") {
            return simdjson::INCORRECT_TYPE;
        }
        started = true;
        return simdjson::SUCCESS;
    });
    return error == simdjson::SUCCESS && started;
}

InferenceResult parse_answer(std::string_view body) {
    InferenceAnswer answer;
    enum Field : std::uint8_t {
        rms = 1,
        zero_crossings = 2,
        checksum = 4,
        samples = 8,
        transcript = 16,
        audio_bytes = 32,
        all = 63
    };
    unsigned seen = 0;
    const auto error = for_each_field(body, [&](std::string_view name, auto value) {
        const auto once = [&seen](Field field, simdjson::error_code failed) {
            if ((seen & field) != 0) {
                return simdjson::INCORRECT_TYPE;
            }
            seen |= field;
            return failed;
        };
        if (name == "rms") {
            return once(rms, value.get(answer.rms));
        }
        if (name == "zero_crossings") {
            return once(zero_crossings, value.get(answer.zero_crossings));
        }
        if (name == "checksum") {
            return once(checksum, get_u32(value, answer.checksum));
        }
        if (name == "samples") {
            return once(samples, value.get(answer.samples));
        }
        if (name == "transcript") {
            std::string_view text;
            const auto failed = value.get(text);
            answer.transcript = text;
            return once(transcript, failed);
        }
        if (name == "audio_bytes") {
            return once(audio_bytes, value.get(answer.audio_bytes));
        }
        return simdjson::NO_SUCH_FIELD;
    });
    if (error == simdjson::SUCCESS && seen == all) {
        return answer;
    }
    return std::unexpected{
        Failure::parse(error == simdjson::SUCCESS ? "a field is missing" : simdjson::error_message(error))};
}

std::string partial_json(const FrameRange& range, const InferenceAnswer& answer, const Echo& echo,
                         Milliseconds flush_lateness) {
    return JsonObjectWriter{384}
        .field("type", "partial")
        .field("oldest_frame_seq", range.oldest_seq)
        .field("newest_frame_seq", range.newest_seq)
        .field("frames", range.frames())
        .field("rms", answer.rms)
        .field("zero_crossings", answer.zero_crossings)
        .field("checksum", answer.checksum)
        .field("samples", answer.samples)
        .field("transcript", answer.transcript)
        .field("audio_bytes", answer.audio_bytes)
        .field("cpu_passes", echo.cpu_passes)
        .field("flush_lateness_ms", flush_lateness.count())
        .finish();
}

std::string error_json(const Failure& failure, const ErrorContext& context) {
    const auto count = [](Milliseconds elapsed) { return elapsed.count(); };
    return JsonObjectWriter{512}
        .field("type", "error")
        .field("stage", stage_of(failure.kind))
        .field("kind", name_of(failure.kind))
        .field("message", failure.message)
        .field("oldest_frame_seq", context.range.oldest_seq)
        .field("newest_frame_seq", context.range.newest_seq)
        .field("frames", context.range.frames())
        .field("audio_bytes", context.range.frames() * frame_bytes)
        .field("oldest_age_ms", context.oldest_age.count())
        .field("newest_age_ms", context.newest_age.count())
        .field("flush_lateness_ms", context.flush_lateness.count())
        .field("inference_elapsed_ms", context.inference_elapsed.transform(count))
        .field("inflight_gateway_batches", context.inflight_batches)
        .field("gateway_buffer_frames", context.buffered_frames)
        .field("inference_status", failure.status)
        .field("retryable", is_retryable(failure.kind))
        .finish();
}

} // namespace stt
