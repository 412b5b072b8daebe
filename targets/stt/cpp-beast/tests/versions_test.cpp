#include <gtest/gtest.h>
#include <simdjson.h>

#include "versions.hpp"

namespace stt {
namespace {

TEST(Versions, TheStartLineIsOneObjectThatNamesThem) {
    const auto line = start_line(3000, 2);
    EXPECT_EQ(line.find('\n'), std::string::npos);
    simdjson::dom::parser parser;
    const simdjson::dom::element start = parser.parse(line);
    EXPECT_TRUE(std::string_view{start["runtime"]}.starts_with("boost.asio 1."));
    EXPECT_TRUE(std::string_view{start["language"]}.contains("clang"));
    EXPECT_TRUE(std::string_view{start["libraries"]["boost"]}.starts_with("1."));
    EXPECT_TRUE(std::string_view{start["libraries"]["simdjson"]}.contains('.'));
    EXPECT_TRUE(std::string_view{start["libraries"]["nghttp2"]}.contains('.'));
}

} // namespace
} // namespace stt
