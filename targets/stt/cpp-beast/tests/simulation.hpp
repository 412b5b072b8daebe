// A session, its clock, and the world around it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <simdjson.h>

#include "session.hpp"

namespace stt {

/// What a client has received, as far as tests look at it.
struct Received {
    std::string type;
    std::string kind;
    std::uint64_t oldest_seq;
    std::uint64_t newest_seq;
    std::string text;

    explicit Received(const std::string& json) : text{json} {
        simdjson::dom::parser parser;
        const simdjson::dom::element message = parser.parse(json);
        type = std::string_view{message["type"]};
        std::string_view name;
        kind = message["kind"].get(name) == simdjson::SUCCESS ? name : "";
        oldest_seq = message["oldest_frame_seq"];
        newest_seq = message["newest_frame_seq"];
    }

    [[nodiscard]] double number(std::string_view field) const {
        simdjson::dom::parser parser;
        return parser.parse(text)[field].get_double();
    }

    [[nodiscard]] bool is_null(std::string_view field) const {
        simdjson::dom::parser parser;
        return parser.parse(text)[field].is_null();
    }

    [[nodiscard]] std::string summary() const {
        const auto name = kind.empty() ? type : type + " " + kind;
        return name + " " + std::to_string(oldest_seq) + "-" + std::to_string(newest_seq);
    }
};

class Simulation : private CallStarter {
public:
    static constexpr auto interval = std::chrono::milliseconds{1000};
    static constexpr auto jitter = std::chrono::milliseconds{300};

    static SessionSettings defaults() {
        SessionSettings settings;
        settings.flush_interval = interval;
        settings.inference_timeout = std::chrono::milliseconds{2500};
        return settings;
    }

    /// A session that has had its start message at time 0.
    explicit Simulation(const SessionSettings& settings = defaults(), std::size_t jobs_max = 0)
        : settings_{settings}, jobs_{jobs_max}, session_{settings_, jitter, begin_, environment()} {
        EXPECT_TRUE(session_.on_text(begin_, R"({"type":"start"})"));
    }

    [[nodiscard]] Session& session() noexcept { return session_; }
    [[nodiscard]] Metrics& metrics() noexcept { return metrics_; }
    [[nodiscard]] Limit& jobs() noexcept { return jobs_; }
    [[nodiscard]] BlockPool& blocks() noexcept { return blocks_; }
    [[nodiscard]] TimePoint now() const noexcept { return now_; }
    [[nodiscard]] TimePoint at(std::int64_t ms) const noexcept { return begin_ + std::chrono::milliseconds{ms}; }
    [[nodiscard]] std::uint64_t frames_sent() const noexcept { return frames_sent_; }
    [[nodiscard]] bool in_flight() const noexcept { return call_ != nullptr; }
    [[nodiscard]] std::size_t calls_at_once_max() const noexcept { return calls_at_once_max_; }
    [[nodiscard]] const std::vector<Received>& received() const noexcept { return received_; }
    void let_client_read(bool reads) noexcept { client_reads_ = reads; }

    [[nodiscard]] std::vector<std::string> summaries() const {
        std::vector<std::string> texts;
        for (const auto& message : received_) {
            texts.push_back(message.summary());
        }
        return texts;
    }

    /// Frames whose samples tell their number.
    Verdict send(std::size_t count) {
        for (std::size_t index = 0; index < count; ++index) {
            const auto frame = frame_number(frames_sent_ + 1);
            if (const auto verdict = session_.on_binary(now_, frame); !verdict) {
                return verdict;
            }
            ++frames_sent_;
        }
        return {};
    }

    void go_to(TimePoint time) { now_ = time; }

    /// Wakes the session late or early.
    Verdict wake() {
        auto verdict = session_.on_wake(now_);
        read();
        return verdict;
    }

    /// Lets time pass; the session is woken whenever it wants to be.
    void run_until_ms(std::int64_t ms) {
        const auto end = at(ms);
        while (session_.wake_at() <= end) {
            now_ = std::max(now_, session_.wake_at());
            EXPECT_TRUE(wake());
        }
        now_ = std::max(now_, end);
        read();
    }

    /// Ends the request in flight, if there is one; its audio must be that of its frames.
    bool answer(std::optional<Failure> failure = std::nullopt) {
        if (call_ == nullptr) {
            return false;
        }
        const auto messages_before = received_.size() + session_.outbox().unsent();
        const auto audio = call_->bytes();
        if (failure) {
            session_.on_answer(now_, std::unexpected{*failure});
        } else {
            InferenceAnswer answer;
            answer.transcript = "word";
            answer.audio_bytes = audio.size();
            session_.on_answer(now_, answer);
        }
        EXPECT_EQ(call_, nullptr) << "an answered call is over";
        EXPECT_EQ(received_.size() + session_.outbox().unsent(), messages_before + 1);
        last_audio_ = audio;
        read();
        return true;
    }

    /// The audio of the last answered call must be that of frames `oldest` to `newest`.
    void expect_audio(std::uint64_t oldest, std::uint64_t newest) const {
        std::vector<std::byte> expected;
        for (auto seq = oldest; seq <= newest; ++seq) {
            const auto frame = frame_number(seq);
            expected.insert(expected.end(), frame.begin(), frame.end());
        }
        EXPECT_TRUE(last_audio_ == expected) << "the audio of frames " << oldest << "-" << newest;
    }

    /// Takes what the session has to say, if the client reads.
    void read() {
        while (client_reads_) {
            const auto* const message = session_.outbox().begin_sending();
            if (message == nullptr) {
                break;
            }
            received_.emplace_back(*message);
            session_.outbox().sent();
        }
    }

private:
    class FakeCall final : public PendingCall {
    public:
        FakeCall(Simulation& simulation, AudioChain audio) : simulation_{simulation}, audio_{std::move(audio)} {}
        FakeCall(const FakeCall&) = delete;
        FakeCall& operator=(const FakeCall&) = delete;
        FakeCall(FakeCall&&) = delete;
        FakeCall& operator=(FakeCall&&) = delete;
        ~FakeCall() override {
            simulation_.call_ = nullptr;
            --simulation_.calls_at_once_;
        }

        /// Read piece by piece, as it is sent.
        [[nodiscard]] std::vector<std::byte> bytes() const {
            std::vector<std::byte> all;
            while (all.size() < audio_.size_bytes()) {
                const auto piece = audio_.bytes_at(all.size());
                all.insert(all.end(), piece.begin(), piece.end());
            }
            return all;
        }

    private:
        Simulation& simulation_;
        AudioChain audio_;
    };

    static std::vector<std::byte> frame_number(std::uint64_t seq) {
        std::vector<std::byte> frame(frame_bytes);
        for (std::size_t index = 0; index < frame.size(); ++index) {
            frame[index] = static_cast<std::byte>((seq >> (8 * (index % 4))) & 0xFF);
        }
        return frame;
    }

    Session::Environment environment() {
        return {.blocks = blocks_, .jobs = jobs_, .metrics = metrics_, .calls = *this};
    }

    std::unique_ptr<PendingCall> start_call(AudioChain audio) override {
        ++calls_at_once_;
        calls_at_once_max_ = std::max(calls_at_once_max_, calls_at_once_);
        auto call = std::make_unique<FakeCall>(*this, std::move(audio));
        call_ = call.get();
        return call;
    }

    TimePoint begin_{std::chrono::hours{1}};
    TimePoint now_ = begin_;
    SessionSettings settings_;
    BlockPool blocks_;
    Limit jobs_;
    Metrics metrics_;
    FakeCall* call_ = nullptr;
    std::size_t calls_at_once_ = 0;
    std::size_t calls_at_once_max_ = 0;
    bool client_reads_ = true;
    std::uint64_t frames_sent_ = 0;
    std::vector<Received> received_;
    std::vector<std::byte> last_audio_;
    Session session_;
};

} // namespace stt
