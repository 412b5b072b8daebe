// Reads the configuration, starts the workers, serves until SIGTERM or SIGINT, drains.

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <thread>
#include <vector>

#include <sys/resource.h>

#include "config.hpp"
#include "gateway.hpp"
#include "versions.hpp"
#include "worker.hpp"

namespace stt {

namespace {

constexpr int exit_bad_value = 2;

/// Blocked before the first thread, so that all threads inherit it and only `wait_for_signal` sees them.
sigset_t block_end_signals() {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    return signals;
}

void wait_for_signal(const sigset_t& signals) {
    int received = 0;
    while (sigwait(&signals, &received) != 0) {
    }
}

/// A session is a descriptor; the soft limit of many systems is 1,024.
void raise_descriptor_limit() {
    rlimit limit{};
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/// SO_REUSEPORT would let a second gateway share the port without a word. So the port is first bound without it.
void check_port_is_free(std::uint16_t port) {
    net::io_context io;
    Acceptor probe{io, tcp::v4()};
    probe.set_option(Acceptor::reuse_address{true});
    probe.bind({tcp::v4(), port});
}

/// Returns when the last socket is closed, or DRAIN_TIMEOUT_MS is nearly over.
void drain(Gateway& gateway, const std::vector<std::unique_ptr<Worker>>& workers) {
    constexpr auto poll_interval = std::chrono::milliseconds{5};
    const auto begun = Clock::now();
    gateway.is_draining = true;
    for (const auto& worker : workers) {
        // What is in flight gets four fifths of the time, so that a session which gives up can still say so.
        worker->drain(begun + gateway.config.drain_timeout * 4 / 5);
    }
    const auto deadline = begun + gateway.config.drain_timeout * 19 / 20;
    while (gateway.sockets.in_use() > 0 && Clock::now() < deadline) {
        std::this_thread::sleep_for(poll_interval);
    }
}

void serve(Config config) {
    const auto signals = block_end_signals();
    raise_descriptor_limit();
    check_port_is_free(config.port);
    Gateway gateway{std::move(config)};
    std::vector<std::unique_ptr<Worker>> workers;
    workers.reserve(gateway.config.worker_threads);
    for (std::size_t index = 0; index < gateway.config.worker_threads; ++index) {
        workers.push_back(std::make_unique<Worker>(gateway, index));
    }
    std::puts(start_line(gateway.config.port, gateway.config.worker_threads).c_str());
    std::fflush(stdout);

    std::vector<std::jthread> threads;
    threads.reserve(workers.size());
    for (const auto& worker : workers) {
        threads.emplace_back([&worker] { worker->run(); });
    }
    wait_for_signal(signals);
    drain(gateway, workers);
    for (const auto& worker : workers) {
        worker->stop();
    }
}

} // namespace

} // namespace stt

int main() {
    auto config = stt::Config::from_environment();
    if (!config) {
        std::fprintf(stderr, "%s\n", config.error().c_str());
        return stt::exit_bad_value;
    }
    const auto port = config->port;
    try {
        stt::serve(std::move(*config));
    } catch (const std::exception& error) {
        std::fprintf(stderr, "cannot serve on port %d: %s\n", int{port}, error.what());
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}
