#include "client.hpp"

#include "worker.hpp"

namespace stt {

namespace {

// Close codes of RFC 6455.
constexpr int going_away = 1001;
constexpr int protocol_error = 1002;
constexpr int try_again_later = 1013;

double seconds(Duration duration) { return std::chrono::duration<double>{duration}.count(); }

}  // namespace

Client::Client(Worker& worker, Limit::Permit place)
    : worker_{worker},
      gateway_{worker.gateway},
      place_{std::move(place)},
      timer_{worker.timers, [this] { keep_time(); }} {
  worker_.clients.insert(this);
}

Client::~Client() { worker_.clients.erase(this); }

void Client::opened(WebSocket* ws) {
  ws_ = ws;
  ++gateway_.metrics.sessions;
  timer_.set(Clock::now() + gateway_.config.start_timeout);
}

void Client::take(std::string_view message, uWS::OpCode opcode) {
  const bool is_text = opcode == uWS::TEXT;
  if (!session_) return is_text && is_start(message) ? start() : end(protocol_error);
  if (const auto code = refusal_of(is_text, message.size())) return end(*code);
  const std::span pcm{reinterpret_cast<const std::uint8_t*>(message.data()), message.size()};
  const auto offer = session_->offer(pcm, Clock::now());
  if (offer == Offer::refused) return end(try_again_later);
  ++gateway_.metrics.frames;
  if (offer == Offer::dropped) ++gateway_.metrics.frames_dropped;
}

void Client::start() {
  std::uniform_real_distribution<double> share{0, 1};
  const auto jitter = gateway_.config.flush_phase_jitter * share(worker_.random);
  session_.emplace(gateway_.config, Clock::now() + std::chrono::duration_cast<Duration>(jitter));
  timer_.set(session_->next_tick());
}

void Client::keep_time() {
  if (!session_) return end(protocol_error);
  if (is_draining_) return;
  tick();
  timer_.set(session_->next_tick());
}

void Client::tick() {
  auto& metrics = gateway_.metrics;
  const auto now = Clock::now();
  const auto unsent = std::ssize(outbox_) + (ws_->getBufferedAmount() > 0 ? 1 : 0);
  const auto tick = session_->tick(now, std::ptrdiff_t(gateway_.config.outbox_messages) - unsent);
  if (tick.deferral) metrics.count(*tick.deferral);
  if (tick.dropped) send_error(*tick.dropped, {Kind::overflow, "the input buffer was full"}, std::nullopt);
  if (!tick.is_ready) return;
  auto job = gateway_.jobs.try_acquire();
  if (!job) return metrics.count(Deferral::jobs);
  auto batch = session_->flush(now);
  metrics.buffer_frames.observe(static_cast<double>(batch.span.frames()));
  metrics.flush_lateness_s.observe(seconds(batch.span.flush_lateness));
  ask(std::move(batch), std::move(job));
}

/// One request. It may outlive its session, and counts as long as the inference server works on it.
void Client::ask(Batch batch, Limit::Permit job) {
  worker_.inference.infer(std::move(batch.pcm),
                          [asker = weak_from_this(), &gateway = gateway_, span = batch.span, job = std::move(job),
                           asked_at = Clock::now()](const InferenceResult& result) mutable {
                            const auto elapsed = Clock::now() - asked_at;
                            gateway.metrics.inference_s.observe(seconds(elapsed));
                            job.reset();
                            if (const auto client = asker.lock()) client->answered(span, result, elapsed);
                          });
}

void Client::answered(const Span& span, const InferenceResult& result, Duration elapsed) {
  session_->answered();
  if (!result) return send_error(span, result.error(), elapsed);
  ++gateway_.metrics.partials;
  send(partial_json(span, *result, gateway_.config.cpu_passes));
}

void Client::send_error(const Span& span, const Failure& failure, std::optional<Duration> elapsed) {
  gateway_.metrics.count(failure.kind);
  const auto inflight = gateway_.jobs.in_use();
  send(error_json(span, failure, Clock::now(), elapsed, inflight, session_->buffer_frames()));
}

void Client::send(std::string message) {
  outbox_.push_back(std::move(message));
  send_more();
}

void Client::send_more() {
  for (; !outbox_.empty() && ws_->getBufferedAmount() == 0; outbox_.pop_front()) ws_->send(outbox_.front(), uWS::TEXT);
  if (is_draining_ && outbox_.empty() && !(session_ && session_->is_in_flight())) end(going_away);
}

void Client::drain() {
  is_draining_ = true;
  send_more();
}

void Client::go_away() { end(going_away); }

void Client::end(int code) { ws_->end(code); }

}  // namespace stt
