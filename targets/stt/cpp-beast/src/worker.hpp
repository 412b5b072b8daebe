// One event loop on one thread, with a listener, sessions and connections to the inference server of its own.
#pragma once

#include <random>

#include <boost/intrusive/list.hpp>

#include "asio.hpp"
#include "audio_chain.hpp"
#include "gateway.hpp"
#include "inference_client.hpp"

namespace stt {

class SessionConnection;

/// Lets a worker find its sessions; a session leaves the list by being destroyed.
using SessionHook = boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>>;

class Worker {
public:
    /// Binds and listens; throws `boost::system::system_error` where that fails.
    Worker(Gateway& gateway, std::size_t index);
    ~Worker();
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;
    Worker(Worker&&) = delete;
    Worker& operator=(Worker&&) = delete;

    /// Serves until `stop`; on the calling thread.
    void run();

    /// From any thread: the sessions answer what is in flight until `until`, and end.
    void drain(TimePoint until);

    /// From any thread: ends `run`.
    void stop() { io_.stop(); }

    // For what runs on this worker.
    [[nodiscard]] Gateway& gateway() noexcept { return gateway_; }
    [[nodiscard]] Metrics& metrics() noexcept { return metrics_; }
    [[nodiscard]] BlockPool& blocks() noexcept { return blocks_; }
    [[nodiscard]] InferenceClient& inference() noexcept { return inference_; }
    [[nodiscard]] Duration draw_jitter();
    void add(SessionConnection& session);

private:
    void accept();
    void on_accept(error_code ec, Socket socket);

    Gateway& gateway_;
    Metrics& metrics_;
    // Before the loop, for what is still in the loop when it is destroyed holds blocks.
    BlockPool blocks_;
    boost::intrusive::list<SessionConnection, boost::intrusive::base_hook<SessionHook>,
                           boost::intrusive::constant_time_size<false>>
        sessions_;
    net::io_context io_;
    Acceptor acceptor_;
    Timer accept_pause_;
    InferenceClient inference_;
    std::minstd_rand random_;
};

} // namespace stt
