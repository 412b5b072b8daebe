// Reads the configuration, starts the workers, serves until SIGTERM or SIGINT, drains.

#include <gnu/libc-version.h>
#include <nghttp2/nghttp2.h>
#include <pthread.h>
#include <sys/resource.h>

#include <csignal>
#include <cstdio>
#include <future>
#include <thread>

#include "worker.hpp"

namespace stt {

namespace {

using Workers = std::vector<Worker*>;

/// Time for close frames to reach the clients before the process ends.
constexpr auto linger_time = std::chrono::milliseconds{300};

void print_versions() {
  const nlohmann::json line{
      {"runtime", "uSockets, epoll"},
      {"language", "C++23, clang " __clang_version__},
      {"libraries",
       {
           {"uWebSockets", UWEBSOCKETS_VERSION},
           {"nghttp2", nghttp2_version(0)->version_str},
           {"nlohmann/json", nlohmann::json::meta()["version"]["string"]},
           {"libstdc++", std::to_string(_GLIBCXX_RELEASE)},
           {"glibc", gnu_get_libc_version()},
       }},
  };
  std::puts(line.dump().c_str());
  std::fflush(stdout);
}

/// A session is a descriptor; the soft limit of many systems is 1,024.
void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

/// Blocks the signals that end the gateway, in this thread and those that it starts, so that they can be waited for.
sigset_t block_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

/// One worker, from its start to its end. `started` gets it once it listens, or null if it cannot.
void run_worker(Gateway& gateway, std::promise<Worker*> started) {
  Worker worker{gateway};
  const bool is_listening = worker.listen();
  started.set_value(is_listening ? &worker : nullptr);
  if (is_listening) worker.run();
}

/// Waits until the last session is closed, but not longer than `limit`.
void wait_for_end_of_sessions(const Gateway& gateway, Duration limit) {
  constexpr auto poll_interval = std::chrono::milliseconds{10};
  for (const auto deadline = Clock::now() + limit; gateway.sessions.in_use() > 0 && Clock::now() < deadline;)
    std::this_thread::sleep_for(poll_interval);
}

/// Answers what is in flight, closes every session.
void drain(Gateway& gateway, const Workers& workers) {
  gateway.is_draining = true;
  for (auto* const worker : workers) worker->drain();
  wait_for_end_of_sessions(gateway, gateway.config.drain_timeout);
  for (auto* const worker : workers) worker->end_sessions();
  std::this_thread::sleep_for(linger_time);
}

void serve(Config config) {
  raise_descriptor_limit();
  const auto signals = block_signals();
  print_versions();
  Gateway gateway{std::move(config)};
  std::vector<std::jthread> threads;
  std::vector<std::future<Worker*>> starts;
  for (std::size_t index = 0; index < gateway.config.worker_threads; ++index) {
    std::promise<Worker*> started;
    starts.push_back(started.get_future());
    threads.emplace_back(run_worker, std::ref(gateway), std::move(started));
  }
  Workers workers;
  for (auto& start : starts)
    if (auto* const worker = start.get()) workers.push_back(worker);
  const bool all_listen = workers.size() == threads.size();
  if (all_listen) {
    int signal = 0;
    sigwait(&signals, &signal);
    drain(gateway, workers);
  }
  for (auto* const worker : workers) worker->stop();
  if (!all_listen) throw std::runtime_error{"cannot listen at port " + std::to_string(gateway.config.port)};
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
