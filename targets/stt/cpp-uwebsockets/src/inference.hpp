// The way to the inference server: HTTP/2 with prior knowledge, over the connections of one worker.
#pragma once

#include <memory>
#include <vector>

#include "messages.hpp"
#include "timers.hpp"

namespace stt {

class H2Connection;

/// Called once, from the loop or from within `infer`. It must not ask again at once.
using OnResult = std::move_only_function<void(InferenceResult)>;

/// Requests go round-robin over a fixed number of connections, each made on first use and made anew when lost.
class InferenceClient {
 public:
  /// All three must outlive the client.
  InferenceClient(us_loop_t* loop, Timers& timers, const Config& config);
  ~InferenceClient();
  InferenceClient(const InferenceClient&) = delete;
  InferenceClient& operator=(const InferenceClient&) = delete;

  /// Asks about one batch, for at most `INFERENCE_TIMEOUT_MS`.
  void infer(std::vector<std::uint8_t> pcm, OnResult on_result);

  /// Closes all connections, so that they do not keep the loop.
  void close();

 private:
  us_socket_context_t* context_;
  Timers& timers_;
  const Config& config_;
  std::vector<std::unique_ptr<H2Connection>> connections_;
  /// Those that take no requests any more, and may still owe answers.
  std::vector<std::unique_ptr<H2Connection>> retired_;
  std::size_t next_ = 0;
};

}  // namespace stt
