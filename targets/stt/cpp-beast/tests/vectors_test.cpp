// The golden vectors, which are shared by all gateways. (`synthetic.json` and `reference.json` are about what a client
// sends and an inference server computes; a gateway does neither.)

#include <string>

#include <gtest/gtest.h>
#include <simdjson.h>

#include "failure.hpp"
#include "messages.hpp"
#include "simulation.hpp"

namespace stt {
namespace {

namespace dom = simdjson::dom;

/// Calls `check(id, case)` for each case of a file, and tells how many there are.
template <class Check> std::size_t for_each_case(const std::string& file, Check check) {
    dom::parser parser;
    const dom::element root = parser.load(std::string{VECTORS_FOLDER} + "/" + file);
    std::size_t count = 0;
    for (const dom::element one : dom::array{root["cases"]}) {
        const std::string id{std::string_view{one["id"]}};
        SCOPED_TRACE(file + ": " + id);
        check(one);
        ++count;
    }
    return count;
}

std::string text_of(const dom::element& element) {
    return std::string{std::string_view{element}};
}

template <class Value> std::optional<Value> optional_of(const dom::element& element) {
    return element.is_null() ? std::nullopt : std::optional<Value>{Value(element)};
}

/// Numbers by value, `rms` among them to the last bit; all fields, and no others. `message` is free text.
void expect_same(const std::string& seen_text, const dom::element& expected) {
    dom::parser parser;
    const dom::object seen = parser.parse(seen_text);
    const dom::object wanted = expected;
    EXPECT_EQ(seen.size(), wanted.size()) << seen_text;
    for (const auto field : wanted) {
        dom::element value;
        ASSERT_FALSE(seen.at_key(field.key).get(value)) << field.key << " in " << seen_text;
        if (field.value.is_number()) {
            EXPECT_DOUBLE_EQ(double(value), double(field.value)) << field.key;
        } else {
            EXPECT_EQ(simdjson::minify(value), simdjson::minify(field.value)) << field.key;
        }
    }
}

FrameRange range_of(const dom::element& batch) {
    return {.oldest_seq = batch["oldest_frame_seq"],
            .newest_seq = batch["newest_frame_seq"],
            .oldest_at = {},
            .newest_at = {}};
}

FailureKind kind_named(std::string_view name) {
    for (const auto kind : failure_kinds) {
        if (name_of(kind) == name) {
            return kind;
        }
    }
    ADD_FAILURE() << "unknown kind " << name;
    return FailureKind::timeout;
}

TEST(Vectors, Start) {
    const auto count = for_each_case(
        "start.json", [](const dom::element& one) { EXPECT_EQ(is_start(text_of(one["text"])), bool(one["ok"])); });
    EXPECT_GT(count, 30U);
}

TEST(Vectors, FramesUpToTheLimitOfTheSocket) {
    for_each_case("frames.json", [](const dom::element& one) {
        constexpr std::uint64_t refused_by_the_socket = 65'536;
        const auto length = std::uint64_t{one["length"]};
        if (length > refused_by_the_socket) {
            return;
        }
        Simulation simulation;
        auto& session = simulation.session();
        const std::vector<std::byte> payload(length);
        const auto verdict = text_of(one["opcode"]) == "text"
                                 ? session.on_text(simulation.now(), std::string(length, ' '))
                                 : session.on_binary(simulation.now(), payload);
        EXPECT_EQ(verdict.has_value(), bool(one["ok"]));
        if (!verdict) {
            EXPECT_EQ(std::to_underlying(verdict.error()), std::uint64_t{one["close"]});
        }
    });
}

TEST(Vectors, InferenceAnswers) {
    const auto count = for_each_case("inference_answers.json", [](const dom::element& one) {
        const auto answer = parse_answer(text_of(one["body"]));
        EXPECT_EQ(answer.has_value(), bool(one["ok"]));
        if (!answer) {
            EXPECT_EQ(name_of(answer.error().kind), text_of(one["kind"]));
            EXPECT_EQ(answer.error().status, 200);
        }
    });
    EXPECT_GT(count, 50U);
}

TEST(Vectors, InferenceFailures) {
    for_each_case("inference_failures.json", [](const dom::element& one) {
        const auto status = optional_of<std::uint64_t>(one["status"]);
        const auto failure = [&] {
            if (status) {
                return Failure::from_status(static_cast<std::uint16_t>(*status));
            }
            return text_of(one["transport"]) == "timeout" ? Failure::timeout() : Failure::connection("reset");
        }();
        EXPECT_EQ(name_of(failure.kind), text_of(one["kind"]));
        EXPECT_EQ(stage_of(failure.kind), text_of(one["stage"]));
        EXPECT_EQ(is_retryable(failure.kind), bool(one["retryable"]));
    });
}

TEST(Vectors, Partials) {
    for_each_case("partials.json", [](const dom::element& one) {
        const auto answer = parse_answer(simdjson::minify(dom::element{one["inference"]}));
        ASSERT_TRUE(answer.has_value());
        const Echo echo{.cpu_passes = static_cast<std::uint32_t>(std::uint64_t{one["config"]["cpu_passes"]})};
        const Milliseconds lateness{double{one["batch"]["flush_lateness_ms"]}};
        expect_same(partial_json(range_of(one["batch"]), *answer, echo, lateness), one["expect"]);
    });
}

TEST(Vectors, Errors) {
    for_each_case("errors.json", [](const dom::element& one) {
        const dom::element input = one["input"];
        const dom::element batch = input["batch"];
        const auto status = optional_of<std::uint64_t>(input["inference_status"]);
        const Failure failure{
            .kind = kind_named(std::string_view{input["kind"]}),
            .message = text_of(input["message"]),
            .status = status.transform([](std::uint64_t wide) { return static_cast<std::uint16_t>(wide); }),
        };
        const auto elapsed = optional_of<double>(input["inference_elapsed_ms"]);
        const auto text =
            error_json(failure, {
                                    .range = range_of(batch),
                                    .oldest_age = Milliseconds{double{batch["oldest_age_ms"]}},
                                    .newest_age = Milliseconds{double{batch["newest_age_ms"]}},
                                    .flush_lateness = Milliseconds{double{batch["flush_lateness_ms"]}},
                                    .inference_elapsed = elapsed.transform([](double ms) { return Milliseconds{ms}; }),
                                    .inflight_batches = input["inflight_gateway_batches"],
                                    .buffered_frames = input["gateway_buffer_frames"],
                                });
        expect_same(text, one["expect"]);
    });
}

} // namespace
} // namespace stt
