// The layer between Beast's WebSocket and the TCP socket.
//
// Beast lets a program put a stream of its own below its WebSocket, and asks that stream to end the connection
// (`async_teardown`). Three things are done here:
//
// - Bytes that came together with the handshake are read first; Beast itself would lose them.
// - The teardown tells the session that its closing handshake has begun, and drains the socket in small turns. (Beast's own
//   one reads until nothing is left, so a client that never stops sending would hold the whole thread.)
// - With READ_PACE_MS the socket is read at a pace: one read takes many frames. See `PacedRead`.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/beast/core/async_base.hpp>
#include <boost/beast/core/bind_handler.hpp>
#include <boost/beast/core/role.hpp>

#include "asio.hpp"

namespace stt {

namespace beast = boost::beast;

/// Whoever owns a `ClientStream`.
class StreamOwner {
public:
    StreamOwner() = default;
    StreamOwner(const StreamOwner&) = delete;
    StreamOwner& operator=(const StreamOwner&) = delete;
    StreamOwner(StreamOwner&&) = delete;
    StreamOwner& operator=(StreamOwner&&) = delete;
    virtual ~StreamOwner() = default;

    /// The close frame is written; only the end of the connection is still to come.
    virtual void on_teardown() = 0;

    /// After `ClientStream::read_now`: everything that had arrived has been taken.
    virtual void on_input_drained() = 0;
};

class ClientStream {
public:
    using executor_type = Executor;

    /// `leftover`: what was read beyond the handshake.
    ClientStream(Socket&& socket, std::string leftover, StreamOwner& owner);

    [[nodiscard]] executor_type get_executor() noexcept { return socket_.get_executor(); }
    [[nodiscard]] Socket& socket() noexcept { return socket_; }
    [[nodiscard]] StreamOwner& owner() noexcept { return owner_; }

    /// Only for handlers, as Beast's operations are: it takes no completion tokens.
    template <class Buffers, class Handler> void async_read_some(const Buffers& buffers, Handler&& handler);

    template <class Buffers, class Handler> void async_write_some(const Buffers& buffers, Handler&& handler) {
        socket_.async_write_some(buffers, std::forward<Handler>(handler));
    }

    /// From now on reads are `pace` apart; zero changes nothing. Not while a read waits.
    void set_read_pace(Duration pace);

    /// With a pace: reads at once, and calls `StreamOwner::on_input_drained` when all that had arrived has been taken.
    void read_now();

    /// Ends the connection without a word; whoever reads or writes is told.
    void close();

private:
    template <class Handler> class PacedRead;

    [[nodiscard]] bool is_paced() const noexcept { return pace_ != Duration::zero(); }
    [[nodiscard]] bool has_pending() const noexcept { return pending_begin_ != pending_.size(); }

    std::size_t take_pending(net::mutable_buffer target);
    error_code receive();
    void report_drained();

    Socket socket_;
    StreamOwner& owner_;
    /// What has been read and not taken: the leftover of the handshake, or what one paced read brought.
    std::string pending_;
    std::size_t pending_begin_ = 0;
    Duration pace_{};
    Timer pace_timer_;
    TimePoint next_read_at_;
    bool must_read_ = false;
    bool must_report_ = false;
};

/// Waits until it is time, then reads without waiting, as often as needed.
///
/// The socket is not waited for: Asio registers sockets edge-triggered once and for all, so that the loop would wake for
/// each arriving frame and find nobody interested. SO_RCVLOWAT keeps the kernel from reporting less than a second's audio
/// (`set_read_pace`), and the timer does the rest.
template <class Handler> class ClientStream::PacedRead : public beast::async_base<Handler, Executor> {
public:
    PacedRead(ClientStream& stream, net::mutable_buffer target, Handler handler)
        : beast::async_base<Handler, Executor>{std::move(handler), stream.get_executor()}, stream_{stream},
          target_{target} {}

    /// The timer has fired, or was cut short.
    void operator()(error_code /*canceled*/) {
        const auto ec = stream_.receive();
        if (ec == net::error::would_block) {
            auto& stream = stream_;
            wait();
            stream.report_drained();
            return;
        }
        this->complete_now(ec, ec ? 0 : stream_.take_pending(target_));
    }

    void wait() {
        auto& timer = stream_.pace_timer_;
        timer.expires_at(stream_.next_read_at_);
        timer.async_wait(std::move(*this));
    }

private:
    ClientStream& stream_;
    net::mutable_buffer target_;
};

template <class Buffers, class Handler> void ClientStream::async_read_some(const Buffers& buffers, Handler&& handler) {
    // Beast's buffer is a ring and comes as two parts, of which the second is hardly ever needed. Given one, Asio calls
    // `recv` and not `recvmsg`, which saves a tenth of a microsecond twice for each frame.
    const net::mutable_buffer target = *net::buffer_sequence_begin(buffers);
    if (has_pending()) {
        const auto taken = take_pending(target);
        net::post(get_executor(), beast::bind_front_handler(std::forward<Handler>(handler), error_code{}, taken));
        return;
    }
    if (!is_paced()) {
        socket_.async_read_some(target, std::forward<Handler>(handler));
        return;
    }
    PacedRead<std::decay_t<Handler>>{*this, target, std::forward<Handler>(handler)}.wait();
    if (!must_read_) {
        report_drained();
    }
}

/// Reads and drops what the client still sends, until it closes too. The owner limits the time by closing the socket.
template <class Handler> class DrainOp : public beast::async_base<Handler, Executor> {
public:
    DrainOp(ClientStream& stream, Handler handler)
        : beast::async_base<Handler, Executor>{std::move(handler), stream.get_executor()}, stream_{stream} {}

    void operator()(error_code ec, std::size_t /*dropped*/) {
        if (ec) {
            this->complete_now(ec == net::error::eof ? error_code{} : ec);
            return;
        }
        drain();
    }

    void drain() {
        // Shared by all: nobody looks at what is in it.
        thread_local std::array<std::byte, std::size_t{16} * 1024> dropped;
        auto& socket = stream_.socket();
        socket.async_read_some(net::buffer(dropped), std::move(*this));
    }

private:
    ClientStream& stream_;
};

/// Beast calls this, by argument-dependent lookup, when the closing handshake is over on our side.
///
/// Closing a socket that holds unread data sends a reset, and the peer's kernel then throws away the close code that it had
/// received. So the socket is shut for writing and read empty.
template <class Handler> void async_teardown(beast::role_type /*role*/, ClientStream& stream, Handler&& handler) {
    stream.owner().on_teardown();
    error_code ignored; // A failure here is one of the next read, too.
    stream.socket().shutdown(Socket::shutdown_send, ignored);
    DrainOp<std::decay_t<Handler>>{stream, std::forward<Handler>(handler)}.drain();
}

/// Beast's way to give up a connection.
inline void beast_close_socket(ClientStream& stream) {
    stream.close();
}

} // namespace stt
