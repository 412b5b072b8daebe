// A session under a simulated clock, rule by rule.

#include <gtest/gtest.h>

#include "simulation.hpp"

namespace stt {
namespace {

using Texts = std::vector<std::string>;
using std::chrono::milliseconds;

std::uint64_t deferred(Simulation& simulation, Deferral reason) {
    return simulation.metrics().deferred[std::to_underlying(reason)].get();
}

class Unstarted : public ::testing::Test, private CallStarter {
protected:
    Session& session() { return session_; }
    static constexpr TimePoint begin{std::chrono::hours{1}};

private:
    std::unique_ptr<PendingCall> start_call(AudioChain /*audio*/) override { return nullptr; }

    SessionSettings settings_;
    BlockPool blocks_;
    Limit jobs_{0};
    Metrics metrics_;
    Session session_{
        settings_, Duration{0}, begin, {.blocks = blocks_, .jobs = jobs_, .metrics = metrics_, .calls = *this}};
};

TEST_F(Unstarted, RefusesAnotherText) {
    EXPECT_EQ(session().on_text(begin, "{}"), std::unexpected{CloseReason::protocol});
}

TEST_F(Unstarted, RefusesAudio) {
    const std::vector<std::byte> frame(frame_bytes);
    EXPECT_EQ(session().on_binary(begin, frame), std::unexpected{CloseReason::protocol});
}

TEST_F(Unstarted, WaitsForTheStartNoLongerThanItsTime) {
    EXPECT_EQ(session().wake_at(), begin + std::chrono::seconds{10});
    EXPECT_TRUE(session().on_wake(begin + milliseconds{9999}));
    EXPECT_EQ(session().on_wake(begin + milliseconds{10'000}), std::unexpected{CloseReason::protocol});
}

TEST(Session, AfterTheStartOnlyFramesAreWelcome) {
    Simulation simulation;
    auto& session = simulation.session();
    EXPECT_EQ(session.on_text(simulation.now(), R"({"type":"start"})"), std::unexpected{CloseReason::protocol});
    EXPECT_EQ(session.on_binary(simulation.now(), std::vector<std::byte>(639)),
              std::unexpected{CloseReason::frame_size});
    EXPECT_EQ(session.on_binary(simulation.now(), {}), std::unexpected{CloseReason::frame_size});
    EXPECT_TRUE(simulation.send(1));
}

TEST(Session, TicksKeepTheirScheduleAndLatenessIsTold) {
    Simulation simulation;
    ASSERT_TRUE(simulation.send(3));
    EXPECT_EQ(simulation.session().wake_at(), simulation.at(1300));
    simulation.go_to(simulation.at(1307));
    ASSERT_TRUE(simulation.wake());
    ASSERT_TRUE(simulation.answer());
    simulation.expect_audio(1, 3);
    EXPECT_EQ(simulation.summaries(), Texts{"partial 1-3"});
    EXPECT_DOUBLE_EQ(simulation.received()[0].number("flush_lateness_ms"), 7);
    EXPECT_EQ(simulation.session().wake_at(), simulation.at(2300));
}

TEST(Session, AVeryLateTickSkipsThoseThatItHasMissed) {
    Simulation simulation;
    ASSERT_TRUE(simulation.send(1));
    simulation.go_to(simulation.at(4500));
    ASSERT_TRUE(simulation.wake());
    EXPECT_TRUE(simulation.answer());
    EXPECT_EQ(simulation.session().wake_at(), simulation.at(5300));
}

TEST(Session, AnEmptyBufferMakesNoRequest) {
    Simulation simulation;
    simulation.run_until_ms(5000);
    EXPECT_FALSE(simulation.in_flight());
    EXPECT_EQ(simulation.blocks().blocks_in_use(), 0U);
}

TEST(Session, ATickWithARequestInFlightLeavesTheAudioForTheNext) {
    Simulation simulation;
    ASSERT_TRUE(simulation.send(1));
    simulation.run_until_ms(1300);
    ASSERT_TRUE(simulation.send(2));
    simulation.run_until_ms(2300);
    EXPECT_EQ(deferred(simulation, Deferral::inflight), 1U);
    EXPECT_TRUE(simulation.answer());
    EXPECT_FALSE(simulation.in_flight()) << "an answer is no tick";
    simulation.run_until_ms(3300);
    EXPECT_TRUE(simulation.answer());
    EXPECT_EQ(simulation.summaries(), (Texts{"partial 1-1", "partial 2-3"}));
}

TEST(Session, ARequestWithoutAnAnswerTimesOut) {
    Simulation simulation;
    ASSERT_TRUE(simulation.send(50));
    simulation.run_until_ms(1300 + 2499);
    EXPECT_TRUE(simulation.received().empty());
    simulation.run_until_ms(1300 + 2500);
    EXPECT_EQ(simulation.summaries(), Texts{"error timeout 1-50"});
    const auto& error = simulation.received()[0];
    EXPECT_DOUBLE_EQ(error.number("inference_elapsed_ms"), 2500);
    EXPECT_DOUBLE_EQ(error.number("oldest_age_ms"), 3800);
    EXPECT_TRUE(error.is_null("inference_status"));
    EXPECT_FALSE(simulation.in_flight());
    EXPECT_EQ(simulation.jobs().in_use(), 0U);
}

TEST(Session, AtTheCapOfTheGatewayTicksDefer) {
    Simulation simulation{Simulation::defaults(), 1};
    {
        const auto taken = simulation.jobs().try_acquire();
        ASSERT_TRUE(simulation.send(1));
        simulation.run_until_ms(2300);
        EXPECT_EQ(deferred(simulation, Deferral::jobs), 2U);
    }
    simulation.run_until_ms(3300);
    EXPECT_TRUE(simulation.answer());
}

TEST(Session, AClientThatDoesNotReadIsLeftToTheOverflowPolicy) {
    auto settings = Simulation::defaults();
    settings.buffer_frames_max = 10;
    settings.outbox_messages_max = 2;
    Simulation simulation{settings};
    simulation.let_client_read(false);
    for (const auto second : {1, 2, 3}) {
        ASSERT_TRUE(simulation.send(1));
        simulation.run_until_ms(second * 1000 + 300);
        simulation.answer();
    }
    EXPECT_EQ(deferred(simulation, Deferral::outbox), 1U);
    ASSERT_TRUE(simulation.send(12));
    EXPECT_EQ(simulation.metrics().frames_dropped.get(), 3U);
    simulation.let_client_read(true);
    simulation.read();
    simulation.run_until_ms(4300);
    simulation.answer();
    EXPECT_EQ(simulation.summaries(), (Texts{"partial 1-1", "partial 2-2", "error overflow 3-5", "partial 6-15"}));
    simulation.expect_audio(6, 15);
}

TEST(Session, AMessageOnItsWayCountsAndStaysWhereItIs) {
    auto settings = Simulation::defaults();
    settings.outbox_messages_max = 1;
    Simulation simulation{settings};
    simulation.let_client_read(false);
    ASSERT_TRUE(simulation.send(1));
    simulation.run_until_ms(1300);
    simulation.answer();
    auto& outbox = simulation.session().outbox();
    const auto* const message = outbox.begin_sending();
    ASSERT_NE(message, nullptr);
    const auto text = *message;
    EXPECT_EQ(outbox.begin_sending(), nullptr) << "one at a time";
    ASSERT_TRUE(simulation.send(1));
    simulation.run_until_ms(2300);
    EXPECT_EQ(deferred(simulation, Deferral::outbox), 1U);
    outbox.push("another");
    EXPECT_EQ(*message, text);
}

TEST(Session, DropsAreNamedAfterTheBatchBeforeThem) {
    auto settings = Simulation::defaults();
    settings.buffer_frames_max = 5;
    Simulation simulation{settings};
    ASSERT_TRUE(simulation.send(5));
    simulation.run_until_ms(1300);
    ASSERT_TRUE(simulation.send(8));
    simulation.run_until_ms(2300);
    EXPECT_TRUE(simulation.received().empty()) << "the drop waits for the batch that is older";
    simulation.answer();
    simulation.run_until_ms(3300);
    simulation.answer();
    EXPECT_EQ(simulation.summaries(), (Texts{"partial 1-5", "error overflow 6-8", "partial 9-13"}));
    const auto& error = simulation.received()[1];
    EXPECT_TRUE(error.is_null("inference_elapsed_ms"));
    EXPECT_DOUBLE_EQ(error.number("audio_bytes"), 1920);
    EXPECT_DOUBLE_EQ(error.number("gateway_buffer_frames"), 5);
}

TEST(Session, DropNewestNamesWhatFollowsTheBuffer) {
    auto settings = Simulation::defaults();
    settings.buffer_frames_max = 5;
    settings.overflow_policy = OverflowPolicy::drop_newest;
    Simulation simulation{settings};
    ASSERT_TRUE(simulation.send(8));
    simulation.run_until_ms(1300);
    simulation.answer();
    ASSERT_TRUE(simulation.send(1));
    simulation.run_until_ms(2300);
    simulation.answer();
    EXPECT_EQ(simulation.summaries(), (Texts{"partial 1-5", "error overflow 6-8", "partial 9-9"}));
    simulation.expect_audio(9, 9);
}

TEST(Session, TheClosePolicyCloses) {
    auto settings = Simulation::defaults();
    settings.buffer_frames_max = 5;
    settings.overflow_policy = OverflowPolicy::close;
    Simulation simulation{settings};
    EXPECT_TRUE(simulation.send(5));
    EXPECT_EQ(simulation.send(1), std::unexpected{CloseReason::overflow});
    EXPECT_EQ(simulation.metrics().frames.get(), 5U);
}

TEST(Session, DrainingAnswersWhatIsInFlightAndNoMore) {
    Simulation simulation;
    ASSERT_TRUE(simulation.send(2));
    simulation.run_until_ms(1300);
    ASSERT_TRUE(simulation.send(2));
    simulation.session().drain(simulation.at(1300 + 4000));
    EXPECT_FALSE(simulation.session().is_drained());
    simulation.run_until_ms(2300);
    simulation.let_client_read(false);
    simulation.answer();
    EXPECT_FALSE(simulation.session().is_drained()) << "the answer has not left";
    simulation.let_client_read(true);
    simulation.read();
    EXPECT_TRUE(simulation.session().is_drained());
    EXPECT_EQ(simulation.summaries(), Texts{"partial 1-2"});
}

TEST(Session, ADrainDoesNotWaitForEver) {
    Simulation simulation;
    ASSERT_TRUE(simulation.send(2));
    simulation.run_until_ms(1300);
    simulation.session().drain(simulation.at(2300));
    EXPECT_TRUE(simulation.session().on_wake(simulation.at(2299)));
    EXPECT_EQ(simulation.session().on_wake(simulation.at(2300)), std::unexpected{CloseReason::going_away});
}

TEST(Session, AnAbandonedRequestGivesBackItsJobAndItsBlocks) {
    Simulation simulation;
    ASSERT_TRUE(simulation.send(30));
    simulation.run_until_ms(1300);
    EXPECT_EQ(simulation.jobs().in_use(), 1U);
    simulation.session().abandon();
    EXPECT_FALSE(simulation.in_flight());
    EXPECT_EQ(simulation.jobs().in_use(), 0U);
    EXPECT_EQ(simulation.blocks().blocks_in_use(), 0U);
}

} // namespace
} // namespace stt
