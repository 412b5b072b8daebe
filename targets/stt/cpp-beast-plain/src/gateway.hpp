// What all workers share, and a worker: one event loop on one thread.
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <memory>
#include <random>
#include <unordered_set>

#include "inference.hpp"
#include "limit.hpp"
#include "metrics.hpp"

namespace stt {

struct Gateway {
  explicit Gateway(Config configuration) : config{std::move(configuration)} {}

  const Config config;
  Metrics metrics;
  Limit sessions{config.max_sessions};
  Limit jobs{config.max_inflight_jobs};
  std::atomic<bool> is_draining = false;
};

class Connection;

/// Its members but the loop are for what runs on its loop.
struct Worker {
  explicit Worker(Gateway& shared) : gateway{shared} {}

  Gateway& gateway;
  std::mt19937 random{std::random_device{}()};
  // Before the loop, because what is left in the loop at its end leaves this set.
  std::unordered_set<Connection*> connections;
  /// The hint is the number of threads that run it.
  net::io_context io{1};
  net::executor_work_guard<net::io_context::executor_type> work{io.get_executor()};
  InferenceClient inference{io, gateway.config};
};

/// Serves a connection that was accepted, until it ends or becomes a session.
net::awaitable<void> serve_http(Worker& worker, boost::beast::tcp_stream stream);

}  // namespace stt
