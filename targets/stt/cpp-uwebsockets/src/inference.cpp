#include "inference.hpp"

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <new>
#include <unordered_map>

namespace stt {

namespace {

/// uSockets measures it in steps of four seconds.
constexpr unsigned connect_timeout_s = 4;
/// A good answer has some 150 bytes.
constexpr std::size_t max_answer_bytes = std::size_t{64} * 1024;
/// Output is gathered up to about this size before it is written.
constexpr std::size_t output_bytes = std::size_t{256} * 1024;

/// A request and its answer.
struct Exchange {
  std::vector<std::uint8_t> body;
  OnResult on_result;
  Timer timeout;
  std::size_t sent_bytes = 0;
  std::uint16_t status = 0;
  std::string answer{};
};

std::unexpected<Failure> reset_because(const std::string& cause) {
  return std::unexpected{Failure{Kind::connection_reset, "the inference request was reset: " + cause}};
}

/// nghttp2 copies what it keeps, so the constness that it asks to be cast away is respected.
nghttp2_nv header(std::string_view name, std::string_view value) {
  const auto bytes = [](std::string_view text) {
    return const_cast<std::uint8_t*>(reinterpret_cast<const std::uint8_t*>(text.data()));
  };
  return {bytes(name), bytes(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NONE};
}

}  // namespace

/// One connection: nghttp2's protocol over a socket of uSockets. nghttp2 does no I/O; it is fed the bytes that were
/// read, and asked for those to write.
class H2Connection {
 public:
  H2Connection(us_socket_context_t* context, Timers& timers, const Config& config) : timers_{timers}, config_{config} {
    nghttp2_session_callbacks* callbacks = nullptr;
    if (nghttp2_session_callbacks_new(&callbacks) != 0) throw std::bad_alloc{};
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
    nghttp2_session* session = nullptr;
    nghttp2_session_client_new(&session, callbacks, this);
    nghttp2_session_callbacks_del(callbacks);
    session_.reset(session);
    if (!session_ || nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, nullptr, 0) != 0) throw std::bad_alloc{};
    socket_ = us_socket_context_connect(0, context, config.inference_host.c_str(), config.inference_port, nullptr, 0,
                                        sizeof(H2Connection*));
    if (socket_ == nullptr) return;
    of(socket_) = this;
    us_socket_timeout(0, socket_, connect_timeout_s);
  }

  /// The connection of a socket.
  static H2Connection*& of(us_socket_t* socket) { return *static_cast<H2Connection**>(us_socket_ext(0, socket)); }

  bool is_closed() const { return socket_ == nullptr; }
  bool takes_requests() const { return !is_closed() && nghttp2_session_check_request_allowed(session_.get()) != 0; }

  /// Requests may be submitted before the connection is open.
  void submit(std::vector<std::uint8_t> pcm, OnResult on_result) {
    if (is_closed()) return on_result(reset_because("cannot connect"));
    const auto length = std::to_string(pcm.size());
    const auto passes = std::to_string(config_.cpu_passes);
    const std::array headers{
        header(":method", "POST"),
        header(":scheme", "http"),
        header(":authority", config_.inference_authority),
        header(":path", config_.inference_path),
        header("content-type", "application/octet-stream"),
        header("content-length", length),
        header("x-cpu-passes", passes),
    };
    const nghttp2_data_provider body{.source = {.ptr = nullptr}, .read_callback = read_body};
    const auto id = nghttp2_submit_request(session_.get(), nullptr, headers.data(), headers.size(), &body, nullptr);
    if (id < 0) return on_result(reset_because(nghttp2_strerror(id)));
    // nghttp2 asks for the body when it is asked for output, so the exchange may follow the request. Made in place,
    // because a timer does not move.
    auto exchange = std::unique_ptr<Exchange>{
        new Exchange{std::move(pcm), std::move(on_result), {timers_, [this, id] { time_out(id); }}}};
    exchange->timeout.set(Clock::now() + config_.inference_timeout);
    exchanges_.emplace(id, std::move(exchange));
    flush();
  }

  void opened() {
    is_open_ = true;
    flush();
  }

  void received(const char* data, int size) {
    const auto taken = nghttp2_session_mem_recv(session_.get(), reinterpret_cast<const std::uint8_t*>(data),
                                                static_cast<std::size_t>(size));
    flush();
    const auto wants_more =
        nghttp2_session_want_read(session_.get()) != 0 || nghttp2_session_want_write(session_.get()) != 0;
    if (taken < 0 || !wants_more) close();
  }

  /// Writes what nghttp2 has ready, as far as the socket takes it. uSockets says when it takes more.
  void flush() {
    while (is_open_) {
      if (written_bytes_ == output_.size()) gather();
      if (output_.empty()) return;
      const auto size = static_cast<int>(output_.size() - written_bytes_);
      const auto written = us_socket_write(0, socket_, output_.data() + written_bytes_, size, 0);
      written_bytes_ += static_cast<std::size_t>(written);
      if (written < size) return;
    }
  }

  void close() {
    if (!is_closed()) us_socket_close(0, socket_, 0, nullptr);
  }

  /// The socket has ended, or never opened.
  void closed(const std::string& cause) {
    socket_ = nullptr;
    is_open_ = false;
    for (const auto& [id, exchange] : std::exchange(exchanges_, {})) exchange->on_result(reset_because(cause));
  }

 private:
  static H2Connection& self(void* user) { return *static_cast<H2Connection*>(user); }

  Exchange* find(std::int32_t id) {
    const auto found = exchanges_.find(id);
    return found == exchanges_.end() ? nullptr : found->second.get();
  }

  void finish(std::int32_t id, InferenceResult result) {
    if (const auto ended = exchanges_.extract(id)) ended.mapped()->on_result(std::move(result));
  }

  void give_up(std::int32_t id, Failure failure) {
    nghttp2_submit_rst_stream(session_.get(), NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
    finish(id, std::unexpected{std::move(failure)});
  }

  void time_out(std::int32_t id) {
    give_up(id, {Kind::timeout, "no answer from the inference server in time"});
    flush();
  }

  static int on_header(nghttp2_session* /*session*/, const nghttp2_frame* frame, const std::uint8_t* name,
                       std::size_t name_size, const std::uint8_t* value, std::size_t value_size, std::uint8_t /*flags*/,
                       void* user) {
    auto* const exchange = self(user).find(frame->hd.stream_id);
    if (exchange == nullptr || std::string_view{reinterpret_cast<const char*>(name), name_size} != ":status") return 0;
    const auto* const digits = reinterpret_cast<const char*>(value);
    std::from_chars(digits, digits + value_size, exchange->status);
    return 0;
  }

  static int on_data(nghttp2_session* /*session*/, std::uint8_t /*flags*/, std::int32_t id, const std::uint8_t* data,
                     std::size_t size, void* user) {
    auto* const exchange = self(user).find(id);
    if (exchange == nullptr) return 0;
    if (exchange->answer.size() + size > max_answer_bytes) {
      self(user).give_up(id, {Kind::parse_error, "the answer is too long", exchange->status});
      return 0;
    }
    exchange->answer.append(reinterpret_cast<const char*>(data), size);
    return 0;
  }

  static int on_frame(nghttp2_session* /*session*/, const nghttp2_frame* frame, void* user) {
    const bool is_answer = frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA;
    auto* const exchange = is_answer ? self(user).find(frame->hd.stream_id) : nullptr;
    const bool is_end = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    // The body of a failure is of no interest; a status below 200 announces another one.
    if (exchange != nullptr && exchange->status >= 200 && (is_end || exchange->status != 200))
      self(user).finish(frame->hd.stream_id, read_answer(exchange->status, exchange->answer));
    return 0;
  }

  /// Also called for a request that could not be sent.
  static int on_stream_close(nghttp2_session* /*session*/, std::int32_t id, std::uint32_t error_code, void* user) {
    self(user).finish(id, reset_because(nghttp2_http2_strerror(error_code)));
    return 0;
  }

  static ssize_t read_body(nghttp2_session* /*session*/, std::int32_t id, std::uint8_t* buffer, std::size_t max_size,
                           std::uint32_t* flags, nghttp2_data_source* /*source*/, void* user) {
    auto* const exchange = self(user).find(id);
    if (exchange == nullptr) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    const auto size = std::min(max_size, exchange->body.size() - exchange->sent_bytes);
    std::copy_n(exchange->body.data() + exchange->sent_bytes, size, buffer);
    exchange->sent_bytes += size;
    if (exchange->sent_bytes == exchange->body.size()) *flags |= NGHTTP2_DATA_FLAG_EOF;
    return static_cast<ssize_t>(size);
  }

  /// Asks nghttp2 for output.
  void gather() {
    output_.clear();
    written_bytes_ = 0;
    while (output_.size() < output_bytes) {
      const std::uint8_t* data = nullptr;
      const auto size = nghttp2_session_mem_send(session_.get(), &data);
      if (size < 0) close();
      if (size <= 0) return;
      output_.append(reinterpret_cast<const char*>(data), static_cast<std::size_t>(size));
    }
  }

  Timers& timers_;
  const Config& config_;
  std::unique_ptr<nghttp2_session, decltype(&nghttp2_session_del)> session_{nullptr, nghttp2_session_del};
  /// Null from the end of the connection on.
  us_socket_t* socket_ = nullptr;
  bool is_open_ = false;
  /// By stream.
  std::unordered_map<std::int32_t, std::unique_ptr<Exchange>> exchanges_;
  std::string output_;
  /// How much of the output the socket has.
  std::size_t written_bytes_ = 0;
};

InferenceClient::InferenceClient(us_loop_t* loop, Timers& timers, const Config& config)
    : context_{us_create_socket_context(0, loop, 0, {})},
      timers_{timers},
      config_{config},
      connections_(config.inference_http_clients) {
  us_socket_context_on_open(0, context_, [](us_socket_t* socket, int /*is_client*/, char* /*ip*/, int /*size*/) {
    H2Connection::of(socket)->opened();
    return socket;
  });
  us_socket_context_on_data(0, context_, [](us_socket_t* socket, char* data, int size) {
    H2Connection::of(socket)->received(data, size);
    return socket;
  });
  us_socket_context_on_writable(0, context_, [](us_socket_t* socket) {
    H2Connection::of(socket)->flush();
    return socket;
  });
  us_socket_context_on_end(0, context_, [](us_socket_t* socket) { return us_socket_close(0, socket, 0, nullptr); });
  us_socket_context_on_close(0, context_, [](us_socket_t* socket, int /*code*/, void* /*reason*/) {
    H2Connection::of(socket)->closed("the connection has ended");
    return socket;
  });
  // uSockets closes such a socket itself.
  us_socket_context_on_connect_error(0, context_, [](us_socket_t* socket, int /*code*/) {
    H2Connection::of(socket)->closed("cannot connect");
    return socket;
  });
  // Only the connect has a timeout: each request has its own.
  us_socket_context_on_timeout(0, context_, [](us_socket_t* socket) {
    H2Connection::of(socket)->closed("cannot connect in time");
    return us_socket_close_connecting(0, socket);
  });
  us_socket_context_on_long_timeout(0, context_, [](us_socket_t* socket) { return socket; });
}

InferenceClient::~InferenceClient() { us_socket_context_free(0, context_); }

void InferenceClient::infer(std::vector<std::uint8_t> pcm, OnResult on_result) {
  auto& place = connections_[next_++ % connections_.size()];
  if (!place || !place->takes_requests()) {
    std::erase_if(retired_, [](const auto& connection) { return connection->is_closed(); });
    if (place) retired_.push_back(std::move(place));
    place = std::make_unique<H2Connection>(context_, timers_, config_);
  }
  place->submit(std::move(pcm), std::move(on_result));
}

void InferenceClient::close() { us_socket_context_close(0, context_); }

}  // namespace stt
