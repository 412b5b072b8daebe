#include "worker.hpp"

#include <algorithm>

#include <boost/asio/detail/socket_option.hpp>
#include <boost/asio/post.hpp>

#include <sys/socket.h>

#include "http_connection.hpp"
#include "session_connection.hpp"

namespace stt {

namespace {

using ReusePort = net::detail::socket_option::boolean<SOL_SOCKET, SO_REUSEPORT>;

/// Connections that may wait to be accepted: many sessions start at once. The kernel caps it at `somaxconn`.
constexpr int backlog = 4096;

/// Out of descriptors or memory: asking again at once would only burn CPU.
constexpr auto accept_pause = std::chrono::milliseconds{50};

} // namespace

Worker::Worker(Gateway& gateway, std::size_t index)
    : gateway_{gateway}, metrics_{*gateway.metrics[index]},
      // One thread: no locks around sockets, and only the queue that `post` from elsewhere needs.
      io_{BOOST_ASIO_CONCURRENCY_HINT_UNSAFE_IO}, acceptor_{io_}, accept_pause_{io_},
      inference_{io_, gateway.config, gateway.config.inference_connections}, random_{std::random_device{}()} {
    const tcp::endpoint endpoint{tcp::v4(), gateway.config.port};
    acceptor_.open(endpoint.protocol());
    acceptor_.set_option(Acceptor::reuse_address{true});
    // Each worker has a queue of its own, and the kernel spreads connections over them.
    acceptor_.set_option(ReusePort{true});
    acceptor_.bind(endpoint);
    acceptor_.listen(backlog);
}

Worker::~Worker() = default;

void Worker::run() {
    accept();
    io_.run();
    // What is left ends without a word, and its handlers get the chance to say so.
    error_code ignored;
    acceptor_.close(ignored);
    for (auto& session : sessions_) {
        session.abort();
    }
    inference_.close();
    io_.restart();
    io_.poll();
}

void Worker::drain(TimePoint until) {
    net::post(io_, [this, until] {
        // A session may leave the list within.
        for (auto session = sessions_.begin(); session != sessions_.end();) {
            (session++)->drain(until);
        }
    });
}

Duration Worker::draw_jitter() {
    std::uniform_real_distribution<double> share{0, 1};
    return std::chrono::duration_cast<Duration>(gateway_.config.flush_phase_jitter * share(random_));
}

void Worker::add(SessionConnection& session) {
    sessions_.push_back(session);
}

void Worker::accept() {
    acceptor_.async_accept([this](error_code ec, Socket socket) { on_accept(ec, std::move(socket)); });
}

void Worker::on_accept(error_code ec, Socket socket) {
    if (ec == net::error::operation_aborted) {
        return;
    }
    if (!ec) {
        // Both messages and pongs are small, and none may wait for an acknowledgement.
        socket.set_option(tcp::no_delay{true}, ec);
        serve_http(*this, std::move(socket));
    } else if (ec != net::error::connection_aborted) {
        accept_pause_.expires_after(accept_pause);
        accept_pause_.async_wait([this](error_code /*canceled*/) { accept(); });
        return;
    }
    accept();
}

} // namespace stt
