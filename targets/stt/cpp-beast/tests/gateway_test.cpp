// The rim, over real sockets and under the sanitizers: what a session's rules do not cover. (The conformance suite of the
// project checks a built gateway from outside.)

#include <thread>

#include <gtest/gtest.h>
#include <simdjson.h>

#include "fake_inference.hpp"
#include "http_connection.hpp"
#include "test_client.hpp"
#include "worker.hpp"

namespace stt {
namespace {

using std::chrono::milliseconds;

std::uint16_t free_port() {
    net::io_context io;
    const Acceptor probe{io, {tcp::v4(), 0}};
    return probe.local_endpoint().port();
}

template <class Condition> bool soon(Condition condition) {
    for (int attempt = 0; attempt < 1000; ++attempt) {
        if (condition()) {
            return true;
        }
        std::this_thread::sleep_for(milliseconds{5});
    }
    return false;
}

class GatewayTest : public ::testing::TestWithParam<int> {
protected:
    /// Call once; tests change `config` before.
    void start() { start(inference.url()); }

    void start(const std::string& inference_url) {
        config.port = free_port();
        config.inference_url = InferenceUrl::parse(inference_url).value();
        gateway_ = std::make_unique<Gateway>(config);
        worker_ = std::make_unique<Worker>(*gateway_, 0);
        thread_ = std::thread{[this] { worker_->run(); }};
    }

    void TearDown() override {
        worker_->stop();
        thread_.join();
        worker_.reset();
        EXPECT_EQ(gateway_->sessions.in_use(), 0U);
        EXPECT_EQ(gateway_->sockets.in_use(), 0U);
        EXPECT_EQ(gateway_->jobs.in_use(), 0U);
    }

    std::unique_ptr<TestClient> connect() const { return std::make_unique<TestClient>(config.port); }

    std::unique_ptr<TestClient> session(std::string_view together = TestClient::start()) const {
        auto client = connect();
        client->send(TestClient::upgrade_request() + std::string{together});
        EXPECT_TRUE(client->read_head().starts_with("HTTP/1.1 101 "));
        return client;
    }

    /// "partial 1-2", "error timeout 3-4", or the opcode of anything else.
    static std::string next(TestClient& client) {
        const auto frame = client.read_frame();
        if (!frame || frame->opcode != 1) {
            return frame ? "opcode " + std::to_string(frame->opcode) : "the end";
        }
        simdjson::dom::parser parser;
        const simdjson::dom::element message = parser.parse(frame->payload);
        std::string_view kind;
        std::ignore = message["kind"].get(kind);
        return std::string{std::string_view{message["type"]}} + " " + std::string{kind} + (kind.empty() ? "" : " ") +
               std::to_string(std::uint64_t{message["oldest_frame_seq"]}) + "-" +
               std::to_string(std::uint64_t{message["newest_frame_seq"]});
    }

    /// The first frame of the partials that come until one ends with `last`, if they follow on one another; 0 if they do not. A tick may fall
    /// between two frames that were sent together, so how many partials there are is nobody's promise.
    static std::uint64_t first_of_partials_until(TestClient& client, std::uint64_t last) {
        std::uint64_t first = 0;
        std::uint64_t newest = 0;
        while (newest < last) {
            const std::string named = next(client);
            std::uint64_t oldest = 0;
            std::uint64_t to = 0;
            // NOLINTNEXTLINE(cppcoreguidelines-pro-type-vararg,cert-err34-c): a test's own text
            if (std::sscanf(named.c_str(), "partial %" SCNu64 "-%" SCNu64, &oldest, &to) != 2 ||
                (newest != 0 && oldest != newest + 1)) {
                ADD_FAILURE() << named << " after frame " << newest;
                return 0;
            }
            first = first == 0 ? oldest : first;
            newest = to;
        }
        EXPECT_EQ(newest, last);
        return first;
    }

    static Config fast() {
        Config config;
        config.drain_timeout = std::chrono::seconds{2};
        config.session.flush_interval = milliseconds{50};
        config.session.inference_timeout = milliseconds{300};
        return config;
    }

    FakeInference inference;
    Config config = fast();

    Gateway& gateway() { return *gateway_; }
    Worker& worker() { return *worker_; }

private:
    std::unique_ptr<Gateway> gateway_;
    std::unique_ptr<Worker> worker_;
    std::thread thread_;
};

TEST_F(GatewayTest, AnswersWhatIsNoSession) {
    config.auth_token = "secret";
    start();
    for (const auto& [request, status] : {
             std::pair{"GET /health HTTP/1.1\r\nHost: x\r\n\r\n", "200"},
             std::pair{"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", "200"},
             std::pair{"GET /ws/stt HTTP/1.1\r\nHost: x\r\n\r\n", "426"},
             std::pair{"POST /health HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc", "404"},
             std::pair{"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "404"},
             std::pair{"nonsense\r\n\r\n", "400"},
         }) {
        const auto client = connect();
        client->send(request);
        EXPECT_TRUE(client->read_head().starts_with(std::string{"HTTP/1.1 "} + status)) << request;
    }
    const auto stranger = connect();
    stranger->send(TestClient::upgrade_request("Authorization: Bearer Secret\r\n"));
    EXPECT_TRUE(stranger->read_head().starts_with("HTTP/1.1 401"));
    const auto friendly = connect();
    friendly->send(TestClient::upgrade_request("Authorization: bearer secret\r\n"));
    EXPECT_TRUE(friendly->read_head().starts_with("HTTP/1.1 101"));
}

TEST(Token, IsComparedWhole) {
    EXPECT_TRUE(bears_token("Bearer abc", "abc"));
    EXPECT_TRUE(bears_token("BEARER abc", "abc"));
    for (const auto* const wrong :
         {"", "Bearer", "Bearer ", "Bearer ab", "Bearer abd", "Bearer abcd", "Basic abc", "abc"}) {
        EXPECT_FALSE(bears_token(wrong, "abc")) << wrong;
    }
}

// With and without a pace of reading: what comes is the same.
TEST_P(GatewayTest, AudioTogetherWithTheHandshakeIsAnswered) {
    config.read_pace = milliseconds{GetParam()};
    start();
    const auto client = session(TestClient::start() + TestClient::audio(30));
    EXPECT_EQ(first_of_partials_until(*client, 30), 1U);
    client->send(TestClient::audio(60));
    EXPECT_EQ(first_of_partials_until(*client, 90), 31U);
    client->send(TestClient::frame(0x89, "ping"));
    const auto pong = client->read_frame();
    ASSERT_TRUE(pong);
    EXPECT_EQ(pong->opcode, 10);
    EXPECT_EQ(pong->payload, "ping");
    client->send(TestClient::frame(0x88, "\x03\xe8"));
    EXPECT_EQ(client->read_close(), 1000);
    EXPECT_FALSE(client->read_frame()) << "then the end";
    EXPECT_TRUE(soon([this] { return gateway().sockets.in_use() == 0; }));
}

TEST_P(GatewayTest, AFlushSeesWhatHasArrived) {
    config.read_pace = milliseconds{GetParam()};
    config.session.flush_interval = milliseconds{400};
    start();
    // On a busy machine this thread may sleep beyond the flush: then another session tries again.
    std::string named;
    for (int attempt = 0; attempt < 5 && named != "partial 1-2"; ++attempt) {
        const auto client = session();
        const auto begun = Clock::now();
        client->send(TestClient::audio(1));
        std::this_thread::sleep_until(begun + milliseconds{330});
        client->send(TestClient::audio(1));
        named = next(*client);
    }
    EXPECT_EQ(named, "partial 1-2");
}

TEST_P(GatewayTest, ViolationsAreAnsweredWithTheirCodeAndDrained) {
    config.read_pace = milliseconds{GetParam()};
    start();
    const std::string frame(640, 'a');
    for (const auto& [bytes, code] : {
             std::pair{TestClient::text("{}"), 1002},
             std::pair{TestClient::frame(0x82, std::string(641, 'a')), 1003},
             std::pair{TestClient::frame(0x82, ""), 1003},
             std::pair{TestClient::frame(0x82, "", 65'537), 1009},
             std::pair{TestClient::frame(0x82, frame, std::nullopt, false), 1002},
             std::pair{TestClient::frame(0xC2, frame), 1002},
             std::pair{TestClient::frame(0x83, ""), 1002},
         }) {
        const auto client = session();
        // What follows must not keep the close from arriving.
        client->send(bytes + TestClient::audio(100));
        EXPECT_EQ(client->read_close(), code);
        EXPECT_TRUE(soon([this] { return gateway().sessions.in_use() == 0; }))
            << "the place is free before the socket is";
    }
}

TEST_P(GatewayTest, AFrameInFragmentsIsOne) {
    config.read_pace = milliseconds{GetParam()};
    start();
    const auto client = session();
    const std::string frame(640, 'a');
    client->send(TestClient::frame(0x02, frame) + TestClient::frame(0x80, ""));
    client->send(TestClient::frame(0x02, frame.substr(1)) + TestClient::frame(0x89, "x") +
                 TestClient::frame(0x80, "a"));
    // Pongs and partials are told apart, but not in which order they come.
    std::string named = next(*client);
    const bool pong_first = named == "opcode 10";
    named = pong_first ? next(*client) : named;
    if (named == "partial 1-1") {
        named = next(*client);
        if (!pong_first && named == "opcode 10") {
            named = next(*client);
        }
        EXPECT_EQ(named, "partial 2-2");
    } else {
        EXPECT_TRUE(pong_first);
        EXPECT_EQ(named, "partial 1-2");
    }
}

INSTANTIATE_TEST_SUITE_P(ReadPace, GatewayTest, ::testing::Values(0, 100));

TEST_F(GatewayTest, FailuresAreNamedAndTheSessionGoesOn) {
    using enum FakeInference::Mode;
    start();
    const auto client = session();
    std::uint64_t seq = 0;
    for (const auto& [mode, expected] : {
             std::pair{answer, "partial "},
             std::pair{unavailable, "error http_5xx "},
             std::pair{garbage, "error parse_error "},
             std::pair{never, "error timeout "},
             std::pair{disconnect, "error connection_reset "},
             std::pair{answer, "partial "},
         }) {
        inference.set_mode(mode);
        client->send(TestClient::audio(1));
        const auto frame = std::to_string(++seq);
        EXPECT_EQ(next(*client), expected + frame + "-" + frame);
    }
    EXPECT_TRUE(soon([this] { return inference.streams_reset() == 1; })) << "what timed out is given up";
}

TEST_F(GatewayTest, AClientThatLeavesTakesItsRequestWithIt) {
    inference.set_mode(FakeInference::Mode::never);
    config.session.inference_timeout = std::chrono::seconds{60};
    start();
    {
        const auto client = session(TestClient::start() + TestClient::audio(40));
        ASSERT_TRUE(soon([this] { return inference.requests() == 1; }));
        EXPECT_EQ(gateway().jobs.in_use(), 1U);
    }
    EXPECT_TRUE(soon([this] { return gateway().jobs.in_use() == 0 && gateway().sockets.in_use() == 0; }));
    EXPECT_TRUE(soon([this] { return inference.streams_reset() == 1; }));
}

TEST_F(GatewayTest, WithoutAnInferenceServerRequestsFailSoon) {
    start("http://localhost:" + std::to_string(free_port()));
    const auto client = session(TestClient::start() + TestClient::audio(2));
    EXPECT_EQ(next(*client), "error connection_reset 1-2");
}

TEST_F(GatewayTest, ADrainAnswersWhatIsInFlightAndClosesWith1001) {
    start();
    const auto idle = session();
    const auto busy = session(TestClient::start() + TestClient::audio(1));
    EXPECT_EQ(next(*busy), "partial 1-1");
    EXPECT_TRUE(soon([this] { return gateway().sessions.in_use() == 2; }));
    gateway().is_draining = true;
    worker().drain(Clock::now() + std::chrono::seconds{1});
    EXPECT_EQ(idle->read_close(), 1001);
    EXPECT_EQ(busy->read_close(), 1001);
    const auto late = connect();
    late->send(TestClient::upgrade_request());
    EXPECT_TRUE(late->read_head().starts_with("HTTP/1.1 503"));
}

TEST_F(GatewayTest, ASessionThatDoesNotStartIsClosed) {
    config.session.start_timeout = milliseconds{100};
    start();
    EXPECT_EQ(session("")->read_close(), 1002);
}

TEST_F(GatewayTest, StopsWithSessionsOpen) {
    inference.set_mode(FakeInference::Mode::never);
    start();
    const auto client = session(TestClient::start() + TestClient::audio(1));
    ASSERT_TRUE(soon([this] { return inference.requests() == 1; }));
    // TearDown finds that nothing is left.
}

} // namespace
} // namespace stt
