#include "inference.hpp"

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <array>
#include <boost/asio.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <charconv>
#include <new>
#include <unordered_set>

namespace stt {

namespace {

constexpr auto connect_timeout = std::chrono::seconds{5};
/// A good answer has some 150 bytes.
constexpr std::size_t max_answer_bytes = std::size_t{64} * 1024;
/// Output is gathered up to about this size before it is written.
constexpr std::size_t output_bytes = std::size_t{256} * 1024;

/// A request and its answer.
struct Exchange {
  void finish(InferenceResult outcome) {
    if (result) return;
    result = std::move(outcome);
    done.cancel();
  }

  std::vector<std::uint8_t> body;
  /// Runs until the request times out; the result cancels it.
  net::steady_timer done;
  std::size_t sent_bytes = 0;
  std::int32_t stream_id = 0;
  std::uint16_t status = 0;
  std::string answer{};
  std::optional<InferenceResult> result{};
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

/// One connection: nghttp2's protocol over a Beast TCP stream. nghttp2 does no I/O; it is fed the bytes that were read,
/// and asked for those to write.
class H2Connection : public std::enable_shared_from_this<H2Connection> {
 public:
  H2Connection(net::io_context& io, const Config& config) : stream_{io}, config_{config} {
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
  }

  /// Connects, then reads until the connection ends. Requests may be submitted before.
  net::awaitable<void> run() {
    const auto self = shared_from_this();
    try {
      co_await connect();
      co_await read();
      fail("closed by the server");
    } catch (const boost::system::system_error& error) {
      fail(error.code().message());
    }
  }

  bool takes_requests() const { return !has_failed_ && nghttp2_session_check_request_allowed(session_.get()) != 0; }

  /// The exchange must live until `release`.
  void submit(Exchange& exchange) {
    const auto length = std::to_string(exchange.body.size());
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
    const auto id = nghttp2_submit_request(session_.get(), nullptr, headers.data(), headers.size(), &body, &exchange);
    if (id < 0) return exchange.finish(reset_because(nghttp2_strerror(id)));
    exchange.stream_id = id;
    exchanges_.insert(&exchange);
    flush();
  }

  /// Gives the request up if it is not over.
  void release(Exchange& exchange) {
    if (exchanges_.erase(&exchange) == 0) return;
    nghttp2_session_set_stream_user_data(session_.get(), exchange.stream_id, nullptr);
    nghttp2_submit_rst_stream(session_.get(), NGHTTP2_FLAG_NONE, exchange.stream_id, NGHTTP2_CANCEL);
    flush();
  }

 private:
  /// A stream's user data is its exchange, or null once that was released.
  static Exchange* exchange_of(nghttp2_session* session, std::int32_t stream_id) {
    return static_cast<Exchange*>(nghttp2_session_get_stream_user_data(session, stream_id));
  }

  static int on_header(nghttp2_session* session, const nghttp2_frame* frame, const std::uint8_t* name,
                       std::size_t name_size, const std::uint8_t* value, std::size_t value_size, std::uint8_t /*flags*/,
                       void* /*self*/) {
    auto* const exchange = exchange_of(session, frame->hd.stream_id);
    const auto* const digits = reinterpret_cast<const char*>(value);
    if (exchange != nullptr && std::string_view{reinterpret_cast<const char*>(name), name_size} == ":status")
      std::from_chars(digits, digits + value_size, exchange->status);
    return 0;
  }

  static int on_data(nghttp2_session* session, std::uint8_t /*flags*/, std::int32_t stream_id, const std::uint8_t* data,
                     std::size_t size, void* /*self*/) {
    auto* const exchange = exchange_of(session, stream_id);
    // What is longer is cut off, and then no JSON.
    if (exchange != nullptr && exchange->answer.size() < max_answer_bytes)
      exchange->answer.append(reinterpret_cast<const char*>(data), size);
    return 0;
  }

  static int on_frame(nghttp2_session* session, const nghttp2_frame* frame, void* /*self*/) {
    const bool is_answer = frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA;
    auto* const exchange = is_answer ? exchange_of(session, frame->hd.stream_id) : nullptr;
    const bool is_end = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    // The body of a failure is of no interest; a status below 200 announces another one.
    if (exchange != nullptr && exchange->status >= 200 && (is_end || exchange->status != 200))
      exchange->finish(read_answer(exchange->status, exchange->answer));
    return 0;
  }

  /// Also called for a request that could not be sent.
  static int on_stream_close(nghttp2_session* session, std::int32_t stream_id, std::uint32_t error_code, void* self) {
    if (auto* const exchange = exchange_of(session, stream_id)) {
      static_cast<H2Connection*>(self)->exchanges_.erase(exchange);
      exchange->finish(reset_because(nghttp2_http2_strerror(error_code)));
    }
    return 0;
  }

  static ssize_t read_body(nghttp2_session* session, std::int32_t stream_id, std::uint8_t* buffer, std::size_t max_size,
                           std::uint32_t* flags, nghttp2_data_source* /*source*/, void* /*self*/) {
    auto* const exchange = exchange_of(session, stream_id);
    if (exchange == nullptr) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    const auto size = std::min(max_size, exchange->body.size() - exchange->sent_bytes);
    std::copy_n(exchange->body.data() + exchange->sent_bytes, size, buffer);
    exchange->sent_bytes += size;
    if (exchange->sent_bytes == exchange->body.size()) *flags |= NGHTTP2_DATA_FLAG_EOF;
    return static_cast<ssize_t>(size);
  }

  net::awaitable<void> connect() {
    net::ip::tcp::resolver resolver{stream_.get_executor()};
    const auto endpoints =
        co_await resolver.async_resolve(config_.inference_host, config_.inference_port, net::use_awaitable);
    stream_.expires_after(connect_timeout);
    co_await stream_.async_connect(endpoints, net::use_awaitable);
    stream_.expires_never();
    stream_.socket().set_option(net::ip::tcp::no_delay{true});
    is_connected_ = true;
    flush();
  }

  net::awaitable<void> read() {
    std::array<std::uint8_t, std::size_t{16} * 1024> buffer{};
    while (nghttp2_session_want_read(session_.get()) != 0 || nghttp2_session_want_write(session_.get()) != 0) {
      const auto size = co_await stream_.async_read_some(net::buffer(buffer), net::use_awaitable);
      const auto taken = nghttp2_session_mem_recv(session_.get(), buffer.data(), size);
      if (taken < 0) co_return fail(nghttp2_strerror(static_cast<int>(taken)));
      flush();
    }
  }

  /// Writes what nghttp2 has ready, unless that is going on.
  void flush() {
    if (is_connected_ && !has_failed_ && !std::exchange(is_writing_, true))
      net::co_spawn(stream_.get_executor(), [self = shared_from_this()] { return self->write(); }, net::detached);
  }

  net::awaitable<void> write() {
    for (gather(); !output_.empty(); gather()) {
      // Not `net::async_write`, which hands the kernel 64 KiB in a turn of the loop: with many sessions a turn is long.
      for (std::size_t sent = 0; sent < output_.size();) {
        const auto [ec, size] =
            co_await stream_.async_write_some(net::buffer(output_) + sent, net::as_tuple(net::use_awaitable));
        if (ec) co_return fail(ec.message());
        sent += size;
      }
    }
    is_writing_ = false;
  }

  /// Asks nghttp2 for output.
  void gather() {
    output_.clear();
    while (!has_failed_ && output_.size() < output_bytes) {
      const std::uint8_t* data = nullptr;
      const auto size = nghttp2_session_mem_send(session_.get(), &data);
      if (size < 0) fail(nghttp2_strerror(static_cast<int>(size)));
      if (size <= 0) return;
      output_.insert(output_.end(), data, data + size);
    }
  }

  void fail(const std::string& cause) {
    if (std::exchange(has_failed_, true)) return;
    stream_.close();
    for (auto* const exchange : std::exchange(exchanges_, {})) exchange->finish(reset_because(cause));
  }

  boost::beast::tcp_stream stream_;
  const Config& config_;
  std::unique_ptr<nghttp2_session, decltype(&nghttp2_session_del)> session_{nullptr, nghttp2_session_del};
  std::unordered_set<Exchange*> exchanges_;
  std::vector<std::uint8_t> output_;
  bool is_connected_ = false;
  bool is_writing_ = false;
  bool has_failed_ = false;
};

InferenceClient::InferenceClient(net::io_context& io, const Config& config)
    : io_{io}, config_{config}, connections_(config.inference_http_clients) {}

InferenceClient::~InferenceClient() = default;

net::awaitable<InferenceResult> InferenceClient::infer(std::vector<std::uint8_t> pcm) {
  auto& place = connections_[next_++ % connections_.size()];
  if (!place || !place->takes_requests()) {
    // The old one lives on until its last answer.
    place = std::make_shared<H2Connection>(io_, config_);
    net::co_spawn(io_, [connection = place] { return connection->run(); }, net::detached);
  }
  const auto connection = place;
  Exchange exchange{.body = std::move(pcm), .done = net::steady_timer{io_, config_.inference_timeout}};
  connection->submit(exchange);
  if (!exchange.result) co_await exchange.done.async_wait(net::as_tuple(net::use_awaitable));
  connection->release(exchange);
  if (exchange.result) co_return std::move(*exchange.result);
  co_return std::unexpected{Failure{Kind::timeout, "no answer from the inference server in time"}};
}

}  // namespace stt
