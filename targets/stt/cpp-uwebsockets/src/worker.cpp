// The routes of section 2 of the contract, and the end of a worker.

#include "worker.hpp"

#include <algorithm>

namespace stt {

namespace {

using Request = uWS::HttpRequest;
using Response = uWS::HttpResponse<false>;

constexpr unsigned max_message_bytes = 64 * 1024;

us_loop_t* native_loop() { return reinterpret_cast<us_loop_t*>(uWS::Loop::get()); }

void answer(Response* response, std::string_view status) { response->writeStatus(status)->end(); }

void refuse_without_upgrade(Response* response) {
  response->writeStatus("426 Upgrade Required")->writeHeader("Upgrade", "websocket")->end();
}

/// uWebSockets takes any request with a key of 24 characters for an upgrade.
bool is_handshake(Request& request) {
  const auto is_same_letter = [](char given, char lower) { return (given | 0x20) == lower; };
  return std::ranges::equal(request.getHeader("upgrade"), std::string_view{"websocket"}, is_same_letter) &&
         request.getHeader("sec-websocket-version") == "13";
}

/// In a time that does not tell how much of the token is right.
bool is_authorized(Request& request, const std::string& token) {
  const auto expected = "Bearer " + token;
  const auto given = request.getHeader("authorization");
  if (token.empty()) return true;
  if (given.size() != expected.size()) return false;
  // Volatile, so that no compiler finds an early way out.
  volatile int difference = 0;
  for (std::size_t index = 0; index < given.size(); ++index) difference = difference | (given[index] ^ expected[index]);
  return difference == 0;
}

}  // namespace

Worker::Worker(Gateway& shared)
    : gateway{shared}, timers{native_loop()}, inference{native_loop(), timers, shared.config} {
  app_.get("/health", [this](Response* response, Request* /*request*/) {
    answer(response, gateway.is_draining ? "503 Service Unavailable" : "200 OK");
  });
  app_.get("/metrics", [this](Response* response, Request* /*request*/) {
    response->writeHeader("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
        ->end(gateway.metrics.render(gateway.sessions.in_use(), gateway.jobs.in_use()));
  });
  app_.ws<PerSocketData>("/ws/stt",
                         {
                             .maxPayloadLength = max_message_bytes,
                             .upgrade = [this](Response* response, Request* request,
                                               us_socket_context_t* context) { upgrade(response, request, context); },
                             .open = [](WebSocket* ws) { ws->getUserData()->client->opened(ws); },
                             .message = [](WebSocket* ws, std::string_view message,
                                           uWS::OpCode opcode) { ws->getUserData()->client->take(message, opcode); },
                             .drain = [](WebSocket* ws) { ws->getUserData()->client->send_more(); },
                         });
  // What the route of the WebSocket leaves over.
  app_.get("/ws/stt", [](Response* response, Request* /*request*/) { refuse_without_upgrade(response); });
  app_.any("/*", [](Response* response, Request* /*request*/) { answer(response, "404 Not Found"); });
}

bool Worker::listen() {
  bool is_listening = false;
  // All workers listen at the same port, and the kernel hands connections to one of them.
  app_.listen("0.0.0.0", gateway.config.port,
              [&is_listening](us_listen_socket_t* socket) { is_listening = socket != nullptr; });
  return is_listening;
}

void Worker::upgrade(Response* response, Request* request, us_socket_context_t* context) {
  if (!is_handshake(*request)) return refuse_without_upgrade(response);
  if (!is_authorized(*request, gateway.config.auth_token)) return answer(response, "401 Unauthorized");
  if (gateway.is_draining) return answer(response, "503 Service Unavailable");
  auto place = gateway.sessions.try_acquire();
  if (!place) {
    ++gateway.metrics.sessions_rejected;
    response->writeStatus("503 Service Unavailable")->writeHeader("Retry-After", "1")->end();
    return;
  }
  response->upgrade<PerSocketData>(
      {std::make_shared<Client>(*this, std::move(place))}, request->getHeader("sec-websocket-key"),
      request->getHeader("sec-websocket-protocol"), request->getHeader("sec-websocket-extensions"), context);
}

void Worker::for_each_client(void (*act)(Client&)) {
  loop_->defer([this, act] {
    // A copy, because a client that ends leaves the set.
    for (auto* const client : std::vector(clients.begin(), clients.end())) act(*client);
  });
}

void Worker::drain() {
  for_each_client([](Client& client) { client.drain(); });
}

void Worker::end_sessions() {
  for_each_client([](Client& client) { client.go_away(); });
}

void Worker::stop() {
  loop_->defer([this] {
    app_.close();
    inference.close();
    timers.close();
  });
}

}  // namespace stt
