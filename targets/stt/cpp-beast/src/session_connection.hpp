// The rim around a `Session`: moves bytes, answers and time between it and the world.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/websocket/stream.hpp>

#include "asio.hpp"
#include "client_stream.hpp"
#include "inference_client.hpp"
#include "limit.hpp"
#include "session.hpp"
#include "worker.hpp"

namespace stt {

namespace http = beast::http;
namespace websocket = beast::websocket;

using UpgradeRequest = http::request<http::empty_body>;

/// One upgraded connection. Callbacks and not a coroutine: reading, writing, the timer and the request are four things that
/// go on at once, and of a frame's cost a coroutine's resumption would be a visible part.
///
/// It lives as long as one of its handlers; there is always one until the connection has ended.
class SessionConnection final : public std::enable_shared_from_this<SessionConnection>,
                                public SessionHook,
                                private StreamOwner,
                                private AnswerSink,
                                private CallStarter {
public:
    SessionConnection(Worker& worker, Socket&& socket, std::string leftover, Permit session_permit,
                      Permit socket_permit);
    SessionConnection(const SessionConnection&) = delete;
    SessionConnection& operator=(const SessionConnection&) = delete;
    SessionConnection(SessionConnection&&) = delete;
    SessionConnection& operator=(SessionConnection&&) = delete;
    ~SessionConnection() override = default;

    /// Answers 101 and begins.
    void open(const UpgradeRequest& request);

    /// The gateway shuts down.
    void drain(TimePoint until);

    /// Ends the connection at once, without a word.
    void abort();

private:
    /// One byte more than a frame, to know a longer message without reading all of it.
    static constexpr std::size_t message_buffer_bytes = frame_bytes + 1;

    void on_open(error_code ec);
    void read_start();
    void on_start_read(error_code ec);
    void read();
    void on_read(error_code ec, std::size_t received);
    void on_read_end();
    void send_next();
    void on_sent(error_code ec);
    void arm_timer();
    void on_timer(error_code ec);
    void wake();
    void close_if_drained();

    void close(std::uint16_t code);
    void end_session();

    void on_teardown() override { end_session(); }
    void on_input_drained() override;
    void on_answer(const InferenceResult& result) override;
    [[nodiscard]] std::unique_ptr<PendingCall> start_call(AudioChain audio) override;

    Worker& worker_;
    const Config& config_;
    websocket::stream<ClientStream, false> socket_;
    /// The session's one timer: start timeout, ticks, request timeout; at last the lingering.
    Timer timer_;
    std::optional<Permit> session_permit_;
    Permit socket_permit_;
    /// From the upgrade to the close.
    std::optional<Session> session_;
    std::array<std::byte, message_buffer_bytes> message_{};
    std::size_t message_size_ = 0;
    std::string start_message_;
    TimePoint armed_for_ = TimePoint::max();
    /// With READ_PACE_MS: what has arrived is read before the tick that is due is done.
    bool reads_before_wake_ = false;
    /// There is no session any more.
    bool is_ended_ = false;
    /// The closing handshake is ours, and not an answer of Beast's.
    bool is_closing_ = false;
};

} // namespace stt
