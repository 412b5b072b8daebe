// The way to the inference server: HTTP/2 with prior knowledge, over the connections of one worker.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <memory>
#include <vector>

#include "messages.hpp"

namespace stt {

namespace net = boost::asio;

class H2Connection;

/// Requests go round-robin over a fixed number of connections, each made on first use and made anew when lost.
class InferenceClient {
 public:
  /// `config` must outlive the client.
  InferenceClient(net::io_context& io, const Config& config);
  ~InferenceClient();

  /// Asks about one batch, for at most `INFERENCE_TIMEOUT_MS`.
  net::awaitable<InferenceResult> infer(std::vector<std::uint8_t> pcm);

 private:
  net::io_context& io_;
  const Config& config_;
  std::vector<std::shared_ptr<H2Connection>> connections_;
  std::size_t next_ = 0;
};

}  // namespace stt
