// The HTTP surface (section 2 of the contract): health, metrics, and who gets a session.

#include "connection.hpp"

namespace stt {

namespace {

using Response = http::response<http::string_body>;

constexpr auto request_timeout = std::chrono::seconds{30};

std::string_view view(beast::string_view text) { return {text.data(), text.size()}; }

/// What Beast will accept, so that only a good upgrade is told 401 or 503.
bool is_handshake(const Request& request) {
  constexpr std::size_t key_size = 24;  // 16 bytes in base64
  return websocket::is_upgrade(request) && request[http::field::sec_websocket_version] == "13" &&
         request[http::field::sec_websocket_key].size() == key_size;
}

/// In a time that does not tell how much of the token is right.
bool is_authorized(const Request& request, const std::string& token) {
  const auto expected = "Bearer " + token;
  const auto given = view(request[http::field::authorization]);
  if (token.empty()) return true;
  if (given.size() != expected.size()) return false;
  // Volatile, so that no compiler finds an early way out.
  volatile int difference = 0;
  for (std::size_t index = 0; index < given.size(); ++index) difference = difference | (given[index] ^ expected[index]);
  return difference == 0;
}

Response plain(const Request& request, http::status status, std::string text = {}) {
  Response response{status, request.version(), std::move(text)};
  response.set(http::field::content_type, "text/plain; version=0.0.4; charset=utf-8");
  response.keep_alive(request.keep_alive());
  response.prepare_payload();
  return response;
}

/// The answer; or `place`, if the request is an upgrade and gets a session.
Response respond(Gateway& gateway, const Request& request, Limit::Permit& place) {
  const auto target = view(request.target());
  const auto path = target.substr(0, target.find('?'));
  const bool is_draining = gateway.is_draining;
  if (request.method() != http::verb::get) return plain(request, http::status::not_found);
  if (path == "/health") return plain(request, is_draining ? http::status::service_unavailable : http::status::ok);
  if (path == "/metrics")
    return plain(request, http::status::ok, gateway.metrics.render(gateway.sessions.in_use(), gateway.jobs.in_use()));
  if (path != "/ws/stt") return plain(request, http::status::not_found);
  if (!is_handshake(request)) return plain(request, http::status::upgrade_required);
  if (!is_authorized(request, gateway.config.auth_token)) return plain(request, http::status::unauthorized);
  if (is_draining) return plain(request, http::status::service_unavailable);
  place = gateway.sessions.try_acquire();
  if (place) return {};
  ++gateway.metrics.sessions_rejected;
  auto response = plain(request, http::status::service_unavailable);
  response.set(http::field::retry_after, "1");
  return response;
}

}  // namespace

net::awaitable<void> serve_http(Worker& worker, beast::tcp_stream stream) {
  beast::flat_buffer buffer;
  for (bool goes_on = true; goes_on;) {
    Request request;
    stream.expires_after(request_timeout);
    const auto [unread, received] = co_await http::async_read(stream, buffer, request, as_tuple);
    if (unread) co_return;
    Limit::Permit place;
    const auto response = respond(worker.gateway, request, place);
    if (place)
      co_return co_await std::make_shared<Connection>(worker, std::move(stream), std::move(place))->accept(request);
    const auto [unsent, sent] = co_await http::async_write(stream, response, as_tuple);
    goes_on = !unsent && response.keep_alive();
  }
  beast::error_code ignored;
  stream.socket().shutdown(net::ip::tcp::socket::shutdown_send, ignored);
}

}  // namespace stt
