#include "client_stream.hpp"

#include <sys/socket.h>

#include <boost/asio/detail/socket_option.hpp>

namespace stt {

namespace {

using ReceiveLowWatermark = net::detail::socket_option::integer<SOL_SOCKET, SO_RCVLOWAT>;

/// A second's audio.
constexpr int receive_low_watermark_bytes = 32 * 1024;

} // namespace

ClientStream::ClientStream(Socket&& socket, std::string leftover, StreamOwner& owner)
    : socket_{std::move(socket)}, owner_{owner}, pending_{std::move(leftover)}, pace_timer_{socket_.get_executor()} {}

void ClientStream::set_read_pace(Duration pace) {
    pace_ = pace;
    if (is_paced()) {
        // Where this fails the loop wakes more often, and no more than that.
        error_code ignored;
        socket_.set_option(ReceiveLowWatermark{receive_low_watermark_bytes}, ignored);
        socket_.non_blocking(true, ignored);
    }
}

void ClientStream::read_now() {
    must_read_ = true;
    must_report_ = true;
    next_read_at_ = TimePoint::min();
    pace_timer_.cancel();
}

void ClientStream::close() {
    error_code ignored;
    socket_.close(ignored);
    pace_timer_.cancel();
}

error_code ClientStream::receive() {
    // Shared by the sessions of a thread: what does not fit into Beast's buffer is copied away at once.
    thread_local std::array<char, std::size_t{64} * 1024> scratch;
    must_read_ = false;
    next_read_at_ = Clock::now() + pace_;
    error_code ec;
    const auto received = socket_.read_some(net::buffer(scratch), ec);
    if (!ec) {
        pending_.assign(scratch.data(), received);
    }
    return ec;
}

std::size_t ClientStream::take_pending(net::mutable_buffer target) {
    const auto taken = net::buffer_copy(target, net::buffer(pending_) + pending_begin_);
    pending_begin_ += taken;
    if (!has_pending()) {
        // Its memory goes back, too: a session is between reads most of the time.
        pending_ = std::string{};
        pending_begin_ = 0;
    }
    return taken;
}

void ClientStream::report_drained() {
    if (std::exchange(must_report_, false)) {
        owner_.on_input_drained();
    }
}

} // namespace stt
