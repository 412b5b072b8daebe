// The golden vectors, which are shared by all gateways. (`synthetic.json` and `reference.json` are about what a client
// sends and an inference server computes; a gateway does neither.)

#include <cmath>
#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

#include "messages.hpp"

namespace stt {
namespace {

namespace json = boost::json;

std::string text_of(const json::value& value) { return std::string{value.as_string()}; }

/// Calls `check(case)` for each case of a file. Boost.JSON's parser keeps the last of repeated fields, so the vectors
/// about those are left out.
template <class Check>
void for_each_case(const std::string& file, Check check) {
  std::ifstream stream{std::string{VECTORS_FOLDER} + "/" + file};
  std::stringstream text;
  text << stream.rdbuf();
  const auto root = json::parse(text.str());
  const auto& cases = root.at("cases").as_array();
  ASSERT_FALSE(cases.empty());
  for (const auto& one : cases) {
    const auto id = text_of(one.at("id"));
    SCOPED_TRACE(id);
    if (!id.starts_with("duplicate-")) {
      check(one);
    }
  }
}

void expect_same(const std::string& seen_text, const json::value& expected) {
  const auto seen = json::parse(seen_text).as_object();
  EXPECT_EQ(seen.size(), expected.as_object().size()) << seen_text;
  for (const auto& [name, wanted] : expected.as_object()) {
    const auto* const value = seen.if_contains(name);
    ASSERT_NE(value, nullptr) << name << " in " << seen_text;
    if (wanted.is_number()) {
      const auto number = wanted.to_number<double>();
      EXPECT_NEAR(value->to_number<double>(), number, std::abs(number) * 1e-9) << name;
    } else {
      EXPECT_EQ(json::serialize(*value), json::serialize(wanted)) << name;
    }
  }
}

Duration duration_of(const json::value& ms) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double, std::milli>{ms.to_number<double>()});
}

Span span_of(const json::value& batch) {
  return {
      .oldest_seq = batch.at("oldest_frame_seq").to_number<std::uint64_t>(),
      .newest_seq = batch.at("newest_frame_seq").to_number<std::uint64_t>(),
      .oldest_at = {},
      .newest_at = {},
      .flush_lateness = duration_of(batch.at("flush_lateness_ms")),
  };
}

Kind kind_named(const std::string& name) {
  for (std::size_t index = 0; index < kind_traits.size(); ++index) {
    if (kind_traits[index].name == name) {
      return static_cast<Kind>(index);
    }
  }
  ADD_FAILURE() << "unknown kind " << name;
  return Kind::timeout;
}

TEST(Vectors, Start) {
  for_each_case("start.json",
                [](const json::value& one) { EXPECT_EQ(is_start(text_of(one.at("text"))), one.at("ok").as_bool()); });
}

TEST(Vectors, FramesUpToTheLimitOfTheWebSocket) {
  for_each_case("frames.json", [](const json::value& one) {
    constexpr std::uint64_t max_length = 65'536;
    const auto length = one.at("length").to_number<std::uint64_t>();
    if (length > max_length) {
      return;
    }
    const auto refusal = refusal_of(text_of(one.at("opcode")) == "text", length);
    EXPECT_EQ(refusal.has_value(), !one.at("ok").as_bool());
    if (refusal) {
      EXPECT_EQ(*refusal, one.at("close").as_int64());
    }
  });
}

TEST(Vectors, InferenceAnswers) {
  for_each_case("inference_answers.json", [](const json::value& one) {
    const auto answer = read_answer(200, text_of(one.at("body")));
    EXPECT_EQ(answer.has_value(), one.at("ok").as_bool());
    if (!answer) {
      EXPECT_EQ(traits_of(answer.error().kind).name, text_of(one.at("kind")));
      EXPECT_EQ(answer.error().status, 200);
    }
  });
}

TEST(Vectors, InferenceFailures) {
  for_each_case("inference_failures.json", [](const json::value& one) {
    const auto& traits = traits_of(kind_named(text_of(one.at("kind"))));
    EXPECT_EQ(traits.stage, text_of(one.at("stage")));
    EXPECT_EQ(traits.is_retryable, one.at("retryable").as_bool());
    if (const auto* const status = one.at("status").if_int64()) {
      const auto result = read_answer(static_cast<std::uint16_t>(*status), "");
      ASSERT_FALSE(result);
      EXPECT_EQ(traits_of(result.error().kind).name, text_of(one.at("kind")));
      EXPECT_EQ(result.error().status, *status);
    }
  });
}

TEST(Vectors, Partials) {
  for_each_case("partials.json", [](const json::value& one) {
    const auto answer = read_answer(200, json::serialize(one.at("inference")));
    ASSERT_TRUE(answer);
    const auto passes = one.at("config").at("cpu_passes").to_number<std::uint32_t>();
    expect_same(partial_json(span_of(one.at("batch")), *answer, passes), one.at("expect"));
  });
}

TEST(Vectors, Errors) {
  for_each_case("errors.json", [](const json::value& one) {
    const auto& input = one.at("input");
    const auto& batch = input.at("batch");
    Failure failure{kind_named(text_of(input.at("kind"))), text_of(input.at("message"))};
    if (const auto* const status = input.at("inference_status").if_int64()) {
      failure.status = static_cast<std::uint16_t>(*status);
    }
    const TimePoint now{std::chrono::hours{1}};
    auto span = span_of(batch);
    span.oldest_at = now - duration_of(batch.at("oldest_age_ms"));
    span.newest_at = now - duration_of(batch.at("newest_age_ms"));
    std::optional<Duration> elapsed;
    if (!input.at("inference_elapsed_ms").is_null()) elapsed = duration_of(input.at("inference_elapsed_ms"));
    const auto inflight = input.at("inflight_gateway_batches").to_number<std::size_t>();
    const auto buffered = input.at("gateway_buffer_frames").to_number<std::size_t>();
    expect_same(error_json(span, failure, now, elapsed, inflight, buffered), one.at("expect"));
  });
}

}  // namespace
}  // namespace stt
