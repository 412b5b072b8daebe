// Reads the configuration, starts the workers, serves until SIGTERM or SIGINT, drains.

#include <gnu/libc-version.h>
#include <nghttp2/nghttp2.h>
#include <sys/resource.h>

#include <boost/json.hpp>
#include <cstdio>
#include <thread>

#include "connection.hpp"

namespace stt {

namespace {

using net::ip::tcp;
using Workers = std::vector<std::unique_ptr<Worker>>;

/// Out of descriptors: asking again at once would only burn CPU.
constexpr auto accept_pause = std::chrono::milliseconds{50};
/// Time for close frames to reach the clients before the process ends.
constexpr auto linger_time = std::chrono::milliseconds{300};

/// Boost and Asio write their versions as one number.
std::string dotted(int version) {
  const auto minor = std::to_string(version / 100 % 1000);
  return std::to_string(version / 100'000) + "." + minor + "." + std::to_string(version % 100);
}

void print_versions() {
  const boost::json::object libraries{
      {"boost", dotted(BOOST_VERSION)},
      {"nghttp2", nghttp2_version(0)->version_str},
      {"libstdc++", std::to_string(_GLIBCXX_RELEASE)},
      {"glibc", gnu_get_libc_version()},
  };
  const boost::json::object line{
      {"runtime", "boost.asio " + dotted(BOOST_ASIO_VERSION)},
      {"language", "C++23, clang " __clang_version__},
      {"libraries", libraries},
  };
  std::puts(boost::json::serialize(line).c_str());
  std::fflush(stdout);
}

/// A session is a descriptor; the soft limit of many systems is 1,024.
void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

/// Accepts connections and hands them to the workers in turns.
net::awaitable<void> listen(tcp::acceptor acceptor, Workers& workers) {
  net::steady_timer pause{acceptor.get_executor()};
  for (std::size_t turn = 0;; ++turn) {
    auto& worker = *workers[turn % workers.size()];
    auto [ec, socket] = co_await acceptor.async_accept(worker.io, as_tuple);
    if (ec) {
      pause.expires_after(accept_pause);
      co_await pause.async_wait(net::use_awaitable);
      continue;
    }
    socket.set_option(tcp::no_delay{true}, ec);
    net::co_spawn(worker.io, serve_http(worker, beast::tcp_stream{std::move(socket)}), net::detached);
  }
}

/// Waits until the last session is closed, but not longer than `limit`.
net::awaitable<void> wait_for_end_of_sessions(const Gateway& gateway, Duration limit) {
  constexpr auto poll_interval = std::chrono::milliseconds{10};
  net::steady_timer timer{co_await net::this_coro::executor};
  for (const auto deadline = Clock::now() + limit; gateway.sessions.in_use() > 0 && Clock::now() < deadline;) {
    timer.expires_after(poll_interval);
    co_await timer.async_wait(net::use_awaitable);
  }
}

/// Calls `act` with each connection, on the thread of its worker.
template <class Act>
void for_each_connection(const Workers& workers, Act act) {
  for (const auto& worker : workers)
    net::post(worker->io, [&worker, act] {
      for (auto* const connection : worker->connections) act(*connection);
    });
}

/// On a signal: answers what is in flight, closes every session, ends the loops.
net::awaitable<void> drain_on_signal(Gateway& gateway, const Workers& workers) {
  net::signal_set signals{co_await net::this_coro::executor, SIGTERM, SIGINT};
  co_await signals.async_wait(net::use_awaitable);
  gateway.is_draining = true;
  for_each_connection(workers, [](Connection& connection) { connection.drain(); });
  co_await wait_for_end_of_sessions(gateway, gateway.config.drain_timeout);
  for_each_connection(workers, [](Connection& connection) { connection.close(websocket::close_code::going_away); });
  co_await wait_for_end_of_sessions(gateway, linger_time);
  for (const auto& worker : workers) worker->io.stop();
}

void serve(Config config) {
  raise_descriptor_limit();
  Gateway gateway{std::move(config)};
  Workers workers;
  for (std::size_t index = 0; index < gateway.config.worker_threads; ++index)
    workers.push_back(std::make_unique<Worker>(gateway));
  auto& main_io = workers.front()->io;
  tcp::acceptor acceptor{main_io, tcp::endpoint{tcp::v4(), gateway.config.port}};
  net::co_spawn(main_io, drain_on_signal(gateway, workers), net::detached);
  net::co_spawn(main_io, listen(std::move(acceptor), workers), net::detached);
  print_versions();
  std::vector<std::jthread> threads;
  for (const auto& worker : workers)
    if (worker != workers.front()) threads.emplace_back([&worker] { worker->io.run(); });
  main_io.run();
}

}  // namespace

}  // namespace stt

int main() {
  constexpr int exit_bad_value = 2;
  try {
    // Called before the first thread.
    stt::serve(stt::read_config([](const char* name) { return std::getenv(name); }));  // NOLINT(concurrency-*)
    return EXIT_SUCCESS;
  } catch (const stt::ConfigError& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return exit_bad_value;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cannot serve: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
