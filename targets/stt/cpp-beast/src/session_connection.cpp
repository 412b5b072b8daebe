#include "session_connection.hpp"

#include <span>
#include <utility>

#include <boost/beast/core/bind_handler.hpp>
#include <boost/beast/core/buffers_to_string.hpp>
#include <boost/beast/websocket.hpp>

namespace stt {

namespace {

/// Most that a message may declare as its length.
constexpr std::size_t message_bytes_max = std::size_t{64} * 1024;

/// How long the closing handshake may take after a session has ended.
constexpr auto linger_time = std::chrono::seconds{1};

/// With READ_PACE_MS, how long a tick waits at most for what has arrived to be read.
constexpr auto read_before_wake_max = std::chrono::milliseconds{20};

} // namespace

SessionConnection::SessionConnection(Worker& worker, Socket&& socket, std::string leftover, Permit session_permit,
                                     Permit socket_permit)
    : worker_{worker}, config_{worker.gateway().config},
      socket_{std::move(socket), std::move(leftover), static_cast<StreamOwner&>(*this)}, timer_{socket_.get_executor()},
      session_permit_{std::move(session_permit)}, socket_permit_{std::move(socket_permit)} {}

void SessionConnection::open(const UpgradeRequest& request) {
    // No compression (the stream's second template parameter), and one frame for each of our messages.
    socket_.auto_fragment(false);
    socket_.read_message_max(message_bytes_max);
    socket_.control_callback([this](websocket::frame_type kind, beast::string_view /*payload*/) {
        // Beast answers it; but it answers only when the message that is being written has left, which may be never.
        if (kind == websocket::frame_type::close) {
            end_session();
        }
    });
    socket_.async_accept(request, beast::bind_front_handler(&SessionConnection::on_open, shared_from_this()));
}

void SessionConnection::on_open(error_code ec) {
    if (ec || is_ended_) {
        return abort();
    }
    session_.emplace(
        config_.session, worker_.draw_jitter(), Clock::now(),
        Session::Environment{
            .blocks = worker_.blocks(), .jobs = worker_.gateway().jobs, .metrics = worker_.metrics(), .calls = *this});
    if (worker_.gateway().is_draining.load(std::memory_order_relaxed)) {
        return close(std::to_underlying(CloseReason::going_away));
    }
    arm_timer();
    read_start();
}

void SessionConnection::read_start() {
    socket_.async_read_some(net::buffer(message_), [self = shared_from_this()](error_code ec, std::size_t received) {
        self->message_size_ = received;
        self->on_start_read(ec);
    });
}

/// The first message may be longer than a frame: the contract leaves white space to the client.
void SessionConnection::on_start_read(error_code ec) {
    if (ec || is_ended_) {
        return on_read_end();
    }
    const auto now = Clock::now();
    if (socket_.got_binary()) {
        return close(std::to_underlying(CloseReason::protocol));
    }
    start_message_.append(reinterpret_cast<const char*>(message_.data()), std::exchange(message_size_, 0));
    if (!socket_.is_message_done()) {
        return read_start();
    }
    if (const auto verdict = session_->on_text(now, std::exchange(start_message_, {})); !verdict) {
        return close(std::to_underlying(verdict.error()));
    }
    arm_timer();
    // Not before, for the schedule counts from the arrival of the start.
    socket_.next_layer().set_read_pace(config_.read_pace);
    read();
}

/// Reads into a buffer of the connection's own and not into the session's audio: a batch must be free to leave while a read
/// waits.
void SessionConnection::read() {
    socket_.async_read_some(net::buffer(message_) + message_size_,
                            beast::bind_front_handler(&SessionConnection::on_read, shared_from_this()));
}

void SessionConnection::on_read(error_code ec, std::size_t received) {
    if (ec || is_ended_) {
        return on_read_end();
    }
    message_size_ += received;
    Verdict verdict;
    if (socket_.got_text()) {
        verdict = session_->on_text(Clock::now(), {});
    } else if (socket_.is_message_done() || message_size_ == message_buffer_bytes) {
        verdict = session_->on_binary(Clock::now(), std::span{message_}.first(std::exchange(message_size_, 0)));
    }
    if (!verdict) {
        return close(std::to_underlying(verdict.error()));
    }
    read();
}

/// Nothing more will be read: the connection is gone, or Beast has ended it, or our own closing handshake reads from now on.
void SessionConnection::on_read_end() {
    if (!is_closing_) {
        abort();
    }
}

/// Writes one message at a time. Nothing waits for it: a client that does not read must not keep its own frames from being
/// read.
void SessionConnection::send_next() {
    const auto* const message = session_->outbox().begin_sending();
    if (message == nullptr) {
        return;
    }
    socket_.text(true);
    socket_.async_write(net::buffer(*message),
                        [self = shared_from_this()](error_code ec, std::size_t /*written*/) { self->on_sent(ec); });
}

void SessionConnection::on_sent(error_code ec) {
    if (is_ended_) {
        return;
    }
    if (ec) {
        return abort();
    }
    session_->outbox().sent();
    send_next();
    close_if_drained();
}

void SessionConnection::arm_timer() {
    const auto wake_at = session_->wake_at();
    if (wake_at == armed_for_) {
        return;
    }
    armed_for_ = wake_at;
    timer_.expires_at(wake_at);
    timer_.async_wait(beast::bind_front_handler(&SessionConnection::on_timer, shared_from_this()));
}

void SessionConnection::on_timer(error_code ec) {
    // Also a timer that has fired and was set anew before it could say so.
    if (ec || is_ended_ || timer_.expiry() > Clock::now()) {
        return;
    }
    armed_for_ = TimePoint::max();
    if (config_.read_pace != Duration::zero() && !std::exchange(reads_before_wake_, true)) {
        // Should Beast not come to read, say because a pong cannot be written, the tick is done all the same.
        timer_.expires_after(read_before_wake_max);
        timer_.async_wait(beast::bind_front_handler(&SessionConnection::on_timer, shared_from_this()));
        socket_.next_layer().read_now();
        return;
    }
    wake();
}

void SessionConnection::on_input_drained() {
    if (!is_ended_ && reads_before_wake_) {
        wake();
    }
}

void SessionConnection::wake() {
    reads_before_wake_ = false;
    if (const auto verdict = session_->on_wake(Clock::now()); !verdict) {
        return close(std::to_underlying(verdict.error()));
    }
    arm_timer();
    send_next();
    close_if_drained();
}

void SessionConnection::on_answer(const InferenceResult& result) {
    if (is_ended_) {
        return;
    }
    session_->on_answer(Clock::now(), result);
    send_next();
    close_if_drained();
}

std::unique_ptr<PendingCall> SessionConnection::start_call(AudioChain audio) {
    return worker_.inference().call(std::move(audio), *this);
}

void SessionConnection::drain(TimePoint until) {
    if (is_ended_ || !session_) {
        return;
    }
    session_->drain(until);
    arm_timer();
    close_if_drained();
}

void SessionConnection::close_if_drained() {
    if (!is_ended_ && session_->is_drained()) {
        close(std::to_underlying(CloseReason::going_away));
    }
}

/// Says why, and sees to it that this can arrive.
void SessionConnection::close(std::uint16_t code) {
    if (is_ended_) {
        return;
    }
    is_closing_ = true;
    end_session();
    socket_.async_close(websocket::close_code{code},
                        [self = shared_from_this()](error_code /*ended*/) { self->abort(); });
}

/// There is no session any more, only a connection that is about to end, within `linger_time`. The next client may have the
/// place.
void SessionConnection::end_session() {
    if (std::exchange(is_ended_, true)) {
        return;
    }
    if (session_) {
        // Not destroyed: the message at the head of its outbox may be on its way into the socket.
        session_->abandon();
    }
    session_permit_.reset();
    timer_.expires_after(linger_time);
    timer_.async_wait([self = shared_from_this()](error_code ec) {
        if (!ec) {
            self->abort();
        }
    });
}

void SessionConnection::abort() {
    end_session();
    timer_.cancel();
    socket_.next_layer().close();
}

} // namespace stt
