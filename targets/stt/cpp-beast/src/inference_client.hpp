// The way to the inference server: HTTP/2 with prior knowledge over the few connections of one worker.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "asio.hpp"
#include "audio_chain.hpp"
#include "config.hpp"
#include "messages.hpp"
#include "session.hpp"

namespace stt {

class H2Connection;

/// Whoever waits for an answer; it outlives its call.
class AnswerSink {
public:
    AnswerSink() = default;
    AnswerSink(const AnswerSink&) = delete;
    AnswerSink& operator=(const AnswerSink&) = delete;
    AnswerSink(AnswerSink&&) = delete;
    AnswerSink& operator=(AnswerSink&&) = delete;
    virtual ~AnswerSink() = default;

    virtual void on_answer(const InferenceResult& result) = 0;
};

/// Requests go round-robin over a fixed number of connections, each made on first use and made anew when lost.
class InferenceClient {
public:
    /// `config` must outlive the client.
    InferenceClient(net::io_context& io, const Config& config, std::size_t connections);
    ~InferenceClient();
    InferenceClient(const InferenceClient&) = delete;
    InferenceClient& operator=(const InferenceClient&) = delete;
    InferenceClient(InferenceClient&&) = delete;
    InferenceClient& operator=(InferenceClient&&) = delete;

    /// Sends one batch. It has no timeout of its own, since the session times its request. Failures, too, are told later
    /// and not from within the call.
    [[nodiscard]] std::unique_ptr<PendingCall> call(AudioChain audio, AnswerSink& sink);

    /// Ends all connections; what is in flight fails.
    void close();

private:
    net::io_context& io_;
    const Config& config_;
    std::vector<std::shared_ptr<H2Connection>> connections_;
    std::size_t next_ = 0;
};

} // namespace stt
