#include <gtest/gtest.h>

#include "json_writer.hpp"

namespace stt {
namespace {

TEST(JsonObjectWriter, EscapesWhatMustBe) {
    EXPECT_EQ(JsonObjectWriter{16}.field("a", "q\"b\\n\n\x01 é").finish(), R"({"a":"q\"b\\n\u000a\u0001 é"})");
}

TEST(JsonObjectWriter, WritesEveryKindOfValue) {
    EXPECT_EQ(JsonObjectWriter{16}
                  .field("text", "x")
                  .field("yes", true)
                  .field("count", std::uint64_t{18'446'744'073'709'551'615U})
                  .field("share", 0.1)
                  .field("none", std::optional<double>{})
                  .raw_field("raw", "{}")
                  .finish(),
              R"({"text":"x","yes":true,"count":18446744073709551615,"share":0.1,"none":null,"raw":{}})");
}

TEST(JsonObjectWriter, AnEmptyObjectIsAnObject) {
    EXPECT_EQ(JsonObjectWriter{0}.finish(), "{}");
}

} // namespace
} // namespace stt
