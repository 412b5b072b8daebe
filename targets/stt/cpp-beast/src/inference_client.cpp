#include "inference_client.hpp"

#include <utility>

#include "h2_connection.hpp"

namespace stt {

InferenceClient::InferenceClient(net::io_context& io, const Config& config, std::size_t connections)
    : io_{io}, config_{config}, connections_(connections) {}

InferenceClient::~InferenceClient() {
    close();
}

std::unique_ptr<PendingCall> InferenceClient::call(AudioChain audio, AnswerSink& sink) {
    auto& connection = connections_[next_++ % connections_.size()];
    if (!connection || !connection->takes_requests()) {
        // The old one, if any, lives on until its last answer.
        connection = std::make_shared<H2Connection>(io_, config_);
        connection->connect();
    }
    return connection->submit(std::move(audio), sink);
}

void InferenceClient::close() {
    for (auto& connection : connections_) {
        if (connection) {
            connection->close();
        }
    }
}

} // namespace stt
