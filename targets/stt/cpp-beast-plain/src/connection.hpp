// One client: the session's core tied to its WebSocket, its timer and the inference client.
#pragma once

#include <boost/asio.hpp>
#include <boost/beast.hpp>

#include "gateway.hpp"

namespace stt {

namespace beast = boost::beast;
namespace http = beast::http;
namespace websocket = beast::websocket;

using Request = http::request<http::string_body>;

/// Completion as a value: a client that goes away is no exception.
inline constexpr auto as_tuple = net::as_tuple(net::use_awaitable);

/// It lives as long as one of its coroutines; with it ends its place among `MAX_SESSIONS`.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(Worker& worker, beast::tcp_stream stream, Limit::Permit place)
      : worker_{worker}, place_{std::move(place)}, ws_{std::move(stream)}, timer_{ws_.get_executor()} {
    worker_.connections.insert(this);
    // The WebSocket has timeouts of its own, which take the place of those of the TCP stream.
    beast::get_lowest_layer(ws_).expires_never();
    ws_.set_option(websocket::stream_base::timeout::suggested(beast::role_type::server));
    ws_.read_message_max(max_message_bytes);
    ws_.text(true);
  }

  ~Connection() { worker_.connections.erase(this); }

  /// Answers the upgrade, then serves the session on its own.
  net::awaitable<void> accept(const Request& request) {
    const auto self = shared_from_this();
    const auto [ec] = co_await ws_.async_accept(request, as_tuple);
    if (ec) co_return;
    ++gateway_.metrics.sessions;
    timer_.expires_after(gateway_.config.start_timeout);
    net::co_spawn(ws_.get_executor(), [self] { return self->keep_time(); }, net::detached);
    net::co_spawn(ws_.get_executor(), [self] { return self->read(); }, net::detached);
  }

  /// Closes with 1001, after the answer to what is in flight.
  void drain() {
    is_draining_ = true;
    close_if_drained();
  }

  void close(websocket::close_code code) {
    if (std::exchange(is_ended_, true)) return;
    timer_.expires_after(close_timeout);
    timer_.async_wait([self = shared_from_this()](beast::error_code canceled) {
      if (!canceled) self->abort();
    });
    ws_.async_close(code, [self = shared_from_this()](beast::error_code /*ended*/) { self->abort(); });
  }

 private:
  static constexpr std::size_t max_message_bytes = std::size_t{64} * 1024;
  /// How long the closing handshake may take.
  static constexpr auto close_timeout = std::chrono::seconds{1};

  net::awaitable<void> read() {
    beast::flat_buffer message;
    while (!is_ended_) {
      const auto [ec, size] = co_await ws_.async_read(message, as_tuple);
      if (is_ended_) co_return;  // the closing handshake reads on
      // The client has closed, or is gone, or Beast has closed because of a violation.
      if (ec) co_return abort();
      take(message.cdata());
      message.clear();
    }
  }

  void take(net::const_buffer message) {
    if (!session_) {
      const std::string_view text{static_cast<const char*>(message.data()), message.size()};
      return ws_.got_text() && is_start(text) ? start() : close(websocket::close_code::protocol_error);
    }
    if (const auto code = refusal_of(ws_.got_text(), message.size())) return close(websocket::close_code{*code});
    const std::span pcm{static_cast<const std::uint8_t*>(message.data()), message.size()};
    const auto offer = session_->offer(pcm, Clock::now());
    if (offer == Offer::refused) return close(websocket::close_code::try_again_later);
    ++gateway_.metrics.frames;
    if (offer == Offer::dropped) ++gateway_.metrics.frames_dropped;
  }

  void start() {
    std::uniform_real_distribution<double> share{0, 1};
    const auto jitter = gateway_.config.flush_phase_jitter * share(worker_.random);
    session_.emplace(gateway_.config, Clock::now() + std::chrono::duration_cast<Duration>(jitter));
    timer_.expires_at(session_->next_tick());
  }

  /// Waits for the start message, then ticks. Whoever sets the timer anew wakes this, too.
  net::awaitable<void> keep_time() {
    while (ws_.is_open()) {
      co_await timer_.async_wait(as_tuple);
      if (is_ended_) co_return;
      if (!session_) co_return close(websocket::close_code::protocol_error);
      if (ws_.is_open() && session_->next_tick() <= Clock::now()) tick();
      timer_.expires_at(session_->next_tick());
    }
    // Beast is closing by itself, and it waits for the client's end without a limit.
    timer_.expires_after(close_timeout);
    co_await timer_.async_wait(as_tuple);
    abort();
  }

  void tick() {
    auto& metrics = gateway_.metrics;
    const auto now = Clock::now();
    const auto tick = session_->tick(now, std::ptrdiff_t(gateway_.config.outbox_messages) - std::ssize(outbox_));
    if (tick.deferral) metrics.count(*tick.deferral);
    if (tick.dropped) send_error(*tick.dropped, {Kind::overflow, "the input buffer was full"}, std::nullopt);
    if (!tick.is_ready) return;
    auto job = gateway_.jobs.try_acquire();
    if (!job) return metrics.count(Deferral::jobs);
    auto batch = session_->flush(now);
    metrics.buffer_frames.observe(static_cast<double>(batch.span.frames()));
    metrics.flush_lateness_s.observe(seconds(batch.span.flush_lateness));
    net::co_spawn(ws_.get_executor(), ask(weak_from_this(), worker_, std::move(batch), std::move(job)), net::detached);
  }

  /// One request. It may outlive its session, and counts as long as the inference server works on it.
  static net::awaitable<void> ask(std::weak_ptr<Connection> asker, Worker& worker, Batch batch, Limit::Permit job) {
    const auto asked_at = Clock::now();
    const auto result = co_await worker.inference.infer(std::move(batch.pcm));
    const auto elapsed = Clock::now() - asked_at;
    worker.gateway.metrics.inference_s.observe(seconds(elapsed));
    job.reset();
    if (const auto connection = asker.lock()) connection->answered(batch.span, result, elapsed);
  }

  void answered(const Span& span, const InferenceResult& result, Duration elapsed) {
    session_->answered();
    if (is_ended_ || !ws_.is_open()) return;
    if (!result) return send_error(span, result.error(), elapsed);
    ++gateway_.metrics.partials;
    send(partial_json(span, *result, gateway_.config.cpu_passes));
  }

  void send_error(const Span& span, const Failure& failure, std::optional<Duration> elapsed) {
    gateway_.metrics.count(failure.kind);
    const auto inflight = gateway_.jobs.in_use();
    send(error_json(span, failure, Clock::now(), elapsed, inflight, session_->buffer_frames()));
  }

  void send(std::string message) {
    outbox_.push_back(std::move(message));
    if (outbox_.size() == 1)
      net::co_spawn(ws_.get_executor(), [self = shared_from_this()] { return self->write(); }, net::detached);
  }

  net::awaitable<void> write() {
    while (!outbox_.empty()) {
      const auto [ec, size] = co_await ws_.async_write(net::buffer(outbox_.front()), as_tuple);
      if (ec) co_return;  // the reader notices, too
      outbox_.pop_front();
    }
    close_if_drained();
  }

  void close_if_drained() {
    if (is_draining_ && outbox_.empty() && !(session_ && session_->is_in_flight()))
      close(websocket::close_code::going_away);
  }

  void abort() {
    is_ended_ = true;
    timer_.cancel();
    beast::get_lowest_layer(ws_).close();
  }

  static double seconds(Duration duration) { return std::chrono::duration<double>{duration}.count(); }

  Worker& worker_;
  Gateway& gateway_ = worker_.gateway;
  Limit::Permit place_;
  websocket::stream<beast::tcp_stream> ws_;
  /// The start timeout, then the ticks, at last the limit of the closing handshake.
  net::steady_timer timer_;
  std::optional<Session> session_;
  /// What the socket has not taken. The first message is being written.
  std::deque<std::string> outbox_;
  bool is_draining_ = false;
  /// The session is over; the connection may be closing.
  bool is_ended_ = false;
};

}  // namespace stt
