// The golden vectors, which are shared by all gateways. (`synthetic.json` and `reference.json` are about what a client
// sends and an inference server computes; a gateway does neither.)

#include <cmath>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "messages.hpp"

namespace stt {
namespace {

using nlohmann::json;

/// Calls `check(case)` for each case of a file.
template <class Check>
void for_each_case(const std::string& file, Check check) {
  std::ifstream stream{std::string{VECTORS_FOLDER} + "/" + file};
  const auto cases = json::parse(stream).at("cases");
  ASSERT_FALSE(cases.empty());
  for (const auto& one : cases) {
    SCOPED_TRACE(one.at("id").get<std::string>());
    check(one);
  }
}

void expect_same(const std::string& seen_text, const json& expected) {
  const auto seen = json::parse(seen_text);
  EXPECT_EQ(seen.size(), expected.size()) << seen_text;
  for (const auto& [name, wanted] : expected.items()) {
    ASSERT_TRUE(seen.contains(name)) << name << " in " << seen_text;
    if (wanted.is_number()) {
      const auto number = wanted.get<double>();
      EXPECT_NEAR(seen[name].get<double>(), number, std::abs(number) * 1e-9) << name;
    } else {
      EXPECT_EQ(seen[name], wanted) << name;
    }
  }
}

Duration duration_of(const json& ms) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double, std::milli>{ms.get<double>()});
}

Span span_of(const json& batch) {
  return {
      .oldest_seq = batch.at("oldest_frame_seq"),
      .newest_seq = batch.at("newest_frame_seq"),
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
  for_each_case("start.json", [](const json& one) {
    EXPECT_EQ(is_start(one.at("text").get<std::string>()), one.at("ok").get<bool>());
  });
}

TEST(Vectors, FramesUpToTheLimitOfTheWebSocket) {
  for_each_case("frames.json", [](const json& one) {
    constexpr std::uint64_t max_length = 65'536;
    const auto length = one.at("length").get<std::uint64_t>();
    if (length > max_length) {
      return;
    }
    const auto refusal = refusal_of(one.at("opcode").get<std::string>() == "text", length);
    EXPECT_EQ(refusal.has_value(), !one.at("ok").get<bool>());
    if (refusal) {
      EXPECT_EQ(*refusal, one.at("close").get<int>());
    }
  });
}

TEST(Vectors, InferenceAnswers) {
  for_each_case("inference_answers.json", [](const json& one) {
    const auto answer = read_answer(200, one.at("body").get<std::string>());
    EXPECT_EQ(answer.has_value(), one.at("ok").get<bool>());
    if (!answer) {
      EXPECT_EQ(traits_of(answer.error().kind).name, one.at("kind").get<std::string>());
      EXPECT_EQ(answer.error().status, 200);
    }
  });
}

TEST(Vectors, InferenceFailures) {
  for_each_case("inference_failures.json", [](const json& one) {
    const auto& traits = traits_of(kind_named(one.at("kind").get<std::string>()));
    EXPECT_EQ(traits.stage, one.at("stage").get<std::string>());
    EXPECT_EQ(traits.is_retryable, one.at("retryable").get<bool>());
    if (one.at("status").is_number()) {
      const std::uint16_t status = one.at("status");
      const auto result = read_answer(status, "");
      ASSERT_FALSE(result);
      EXPECT_EQ(traits_of(result.error().kind).name, one.at("kind").get<std::string>());
      EXPECT_EQ(result.error().status, status);
    }
  });
}

TEST(Vectors, Partials) {
  for_each_case("partials.json", [](const json& one) {
    const auto answer = read_answer(200, one.at("inference").dump());
    ASSERT_TRUE(answer);
    const auto passes = one.at("config").at("cpu_passes").get<std::uint32_t>();
    expect_same(partial_json(span_of(one.at("batch")), *answer, passes), one.at("expect"));
  });
}

TEST(Vectors, Errors) {
  for_each_case("errors.json", [](const json& one) {
    const auto& input = one.at("input");
    const auto& batch = input.at("batch");
    Failure failure{kind_named(input.at("kind").get<std::string>()), input.at("message").get<std::string>()};
    if (input.at("inference_status").is_number()) failure.status = input.at("inference_status").get<std::uint16_t>();
    const TimePoint now{std::chrono::hours{1}};
    auto span = span_of(batch);
    span.oldest_at = now - duration_of(batch.at("oldest_age_ms"));
    span.newest_at = now - duration_of(batch.at("newest_age_ms"));
    std::optional<Duration> elapsed;
    if (!input.at("inference_elapsed_ms").is_null()) elapsed = duration_of(input.at("inference_elapsed_ms"));
    const auto inflight = input.at("inflight_gateway_batches").get<std::size_t>();
    const auto buffered = input.at("gateway_buffer_frames").get<std::size_t>();
    expect_same(error_json(span, failure, now, elapsed, inflight, buffered), one.at("expect"));
  });
}

}  // namespace
}  // namespace stt
