#include <vector>

#include <gtest/gtest.h>

#include "limit.hpp"

namespace stt {
namespace {

TEST(Limit, GivesOutItsUnitsAndTakesThemBack) {
    Limit limit{2};
    auto first = limit.try_acquire();
    auto second = limit.try_acquire();
    ASSERT_TRUE(first && second);
    EXPECT_FALSE(limit.try_acquire());
    first.reset();
    EXPECT_EQ(limit.in_use(), 1U);
    auto moved = std::move(second);
    second.reset();
    EXPECT_EQ(limit.in_use(), 1U) << "a permit that was moved away gives nothing back";
    EXPECT_TRUE(limit.try_acquire());
}

TEST(Limit, ZeroIsNoLimit) {
    Limit limit{0};
    std::vector<Permit> permits;
    for (int index = 0; index < 1000; ++index) {
        auto permit = limit.try_acquire();
        ASSERT_TRUE(permit);
        permits.push_back(std::move(*permit));
    }
    EXPECT_EQ(limit.in_use(), 1000U);
}

} // namespace
} // namespace stt
