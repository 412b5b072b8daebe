// The ledger under random histories: every accepted frame is named exactly once, in order, whatever happens.

#include <random>

#include <gtest/gtest.h>

#include "simulation.hpp"

namespace stt {
namespace {

/// Draws what happens; the same seed draws the same history.
class History {
public:
    explicit History(std::uint64_t seed) : random_{seed} {}

    std::size_t number(std::size_t min, std::size_t max) {
        return std::uniform_int_distribution<std::size_t>{min, max}(random_);
    }
    bool coin() { return number(0, 1) == 1; }

private:
    std::mt19937_64 random_;
};

SessionSettings draw_settings(History& history) {
    auto settings = Simulation::defaults();
    settings.buffer_frames_max = history.number(1, 80);
    settings.outbox_messages_max = history.number(1, 4);
    settings.overflow_policy = history.coin() ? OverflowPolicy::drop_oldest : OverflowPolicy::drop_newest;
    return settings;
}

class RandomHistory {
public:
    explicit RandomHistory(std::uint64_t seed)
        : history_{seed}, settings_{draw_settings(history_)}, simulation_{settings_, 1} {}

    void play() {
        const auto events = history_.number(1, 120);
        for (std::size_t event = 0; event < events; ++event) {
            play_one();
            simulation_.read();
            ASSERT_LE(simulation_.session().audio().frames(), settings_.buffer_frames_max);
            ASSERT_LE(simulation_.session().outbox().unsent(), settings_.outbox_messages_max + 1);
        }
        let_everything_through();
        check_ledger();
    }

private:
    void play_one() {
        switch (history_.number(0, 12)) {
        case 0:
        case 1:
        case 2:
        case 3:
            ASSERT_TRUE(simulation_.send(history_.number(1, 40)));
            break;
        case 4:
        case 5:
        case 6:
        case 7:
            clock_ms_ += static_cast<std::int64_t>(history_.number(0, 1500));
            simulation_.run_until_ms(clock_ms_);
            break;
        case 8:
        case 9:
            answer();
            break;
        case 10:
            answer(Failure::from_status(history_.coin() ? 503 : 404));
            break;
        case 11:
            taken_ = history_.coin() ? simulation_.jobs().try_acquire() : std::nullopt;
            break;
        default:
            simulation_.let_client_read(history_.coin());
        }
    }

    void answer(const std::optional<Failure>& failure = std::nullopt) {
        if (!simulation_.answer(failure)) {
            return;
        }
        if (!simulation_.received().empty() && simulation_.session().outbox().unsent() == 0) {
            const auto& last = simulation_.received().back();
            simulation_.expect_audio(last.oldest_seq, last.newest_seq);
        }
    }

    void let_everything_through() {
        taken_.reset();
        simulation_.let_client_read(true);
        for (int round = 0; round < 4; ++round) {
            simulation_.read();
            clock_ms_ += 1300;
            simulation_.run_until_ms(clock_ms_);
            answer();
        }
    }

    void check_ledger() {
        std::uint64_t named = 0;
        std::uint64_t overflowed = 0;
        for (const auto& message : simulation_.received()) {
            ASSERT_EQ(message.oldest_seq, named + 1) << message.summary();
            ASSERT_GE(message.newest_seq, message.oldest_seq);
            named = message.newest_seq;
            overflowed += message.kind == "overflow" ? message.newest_seq - message.oldest_seq + 1 : 0;
        }
        EXPECT_EQ(named, simulation_.frames_sent());
        EXPECT_EQ(overflowed, simulation_.metrics().frames_dropped.get());
        EXPECT_EQ(simulation_.metrics().frames.get(), simulation_.frames_sent());
        EXPECT_LE(simulation_.calls_at_once_max(), 1U);
        EXPECT_EQ(simulation_.jobs().in_use(), 0U);
        EXPECT_EQ(simulation_.blocks().blocks_in_use(), 0U);
    }

    History history_;
    SessionSettings settings_;
    Simulation simulation_;
    std::optional<Permit> taken_;
    std::int64_t clock_ms_ = 0;
};

TEST(RandomHistories, EveryAcceptedFrameIsNamedOnceAndInOrder) {
    for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        RandomHistory{seed}.play();
        if (HasFailure()) {
            break;
        }
    }
}

} // namespace
} // namespace stt
