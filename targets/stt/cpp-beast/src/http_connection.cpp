#include "http_connection.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/websocket/rfc6455.hpp>

#include "session_connection.hpp"

namespace stt {

namespace {

using Stream = beast::basic_stream<tcp, Executor>;
using Request = UpgradeRequest;
using Response = http::response<http::string_body>;

/// Completion as a value: a client that goes away is no exception.
constexpr net::as_tuple_t<net::use_awaitable_t<Executor>> as_result{};

constexpr std::uint32_t header_bytes_max = 8 * 1024;
constexpr auto request_timeout = std::chrono::seconds{10};

/// Places for a session that is about to begin.
struct Admission {
    Permit session;
    Permit socket;
};

Response plain(const Request& request, http::status status, std::string text = {}) {
    Response response{status, request.version()};
    response.keep_alive(request.keep_alive());
    if (!text.empty()) {
        response.set(http::field::content_type, "text/plain; version=0.0.4; charset=utf-8");
        response.body() = std::move(text);
    }
    response.prepare_payload();
    return response;
}

bool is_handshake(const Request& request) {
    // A key is 16 bytes in base64.
    constexpr std::size_t key_size = 24;
    return websocket::is_upgrade(request) && request[http::field::sec_websocket_version] == "13" &&
           request[http::field::sec_websocket_key].size() == key_size;
}

Response upgrade_required(const Request& request) {
    auto response = plain(request, http::status::upgrade_required);
    response.set(http::field::upgrade, "websocket");
    response.set(http::field::sec_websocket_version, "13");
    return response;
}

Response no_room(const Request& request) {
    auto response = plain(request, http::status::service_unavailable);
    response.set(http::field::retry_after, "1");
    return response;
}

std::string_view path_of(const Request& request) {
    const std::string_view target{request.target().data(), request.target().size()};
    return target.substr(0, target.find('?'));
}

class HttpConnection {
public:
    HttpConnection(Worker& worker, Socket socket)
        : worker_{worker}, gateway_{worker.gateway()}, stream_{std::move(socket)} {}

    net::awaitable<void, Executor> serve() {
        for (bool goes_on = true; goes_on;) {
            http::request_parser<http::empty_body> parser;
            parser.header_limit(header_bytes_max);
            stream_.expires_after(request_timeout);
            const auto [failed, size] = co_await http::async_read_header(stream_, buffer_, parser, as_result);
            if (failed) {
                co_return co_await refuse(failed);
            }
            const auto& request = parser.get();
            if (auto admission = admit(request)) {
                begin_session(request, std::move(*admission));
                co_return;
            }
            const auto response = respond(request);
            const auto [unsent, written] = co_await http::async_write(stream_, response, as_result);
            // A body is not read, so what follows it cannot be understood.
            goes_on = !unsent && response.keep_alive() && parser.is_done();
        }
        error_code ignored;
        stream_.socket().shutdown(Socket::shutdown_send, ignored);
    }

private:
    net::awaitable<void, Executor> refuse(error_code why) {
        const bool is_malformed = why.category() == make_error_code(http::error::bad_target).category() &&
                                  why != http::error::end_of_stream && why != http::error::partial_message;
        if (is_malformed) {
            Response response{http::status::bad_request, 11};
            response.keep_alive(false);
            response.prepare_payload();
            std::ignore = co_await http::async_write(stream_, response, as_result);
        }
    }

    /// Places for the session that the request asks for; none where it asks for something else, or must not have it.
    std::optional<Admission> admit(const Request& request) {
        if (path_of(request) != "/ws/stt" || !is_handshake(request) || !may_enter(request) || gateway_.is_draining) {
            return std::nullopt;
        }
        auto session = gateway_.sessions.try_acquire();
        auto socket = gateway_.sockets.try_acquire();
        if (!session || !socket) {
            return std::nullopt;
        }
        return Admission{.session = std::move(*session), .socket = std::move(*socket)};
    }

    bool may_enter(const Request& request) const {
        const auto& token = gateway_.config.auth_token;
        const auto given = request[http::field::authorization];
        return token.empty() || bears_token({given.data(), given.size()}, token);
    }

    Response respond(const Request& request) {
        const auto path = path_of(request);
        if (request.method() != http::verb::get) {
            return plain(request, http::status::not_found);
        }
        if (path == "/health") {
            return plain(request, gateway_.is_draining ? http::status::service_unavailable : http::status::ok);
        }
        if (path == "/metrics") {
            return plain(request, http::status::ok,
                         render_metrics(gateway_.metrics, gateway_.sessions.in_use(), gateway_.jobs.in_use()));
        }
        if (path != "/ws/stt") {
            return plain(request, http::status::not_found);
        }
        if (!is_handshake(request)) {
            return upgrade_required(request);
        }
        if (!may_enter(request)) {
            return plain(request, http::status::unauthorized);
        }
        worker_.metrics().sessions_rejected.add(1);
        return no_room(request);
    }

    void begin_session(const Request& request, Admission admission) {
        worker_.metrics().sessions.add(1);
        const auto leftover = buffer_.cdata();
        const auto session = std::make_shared<SessionConnection>(
            worker_, stream_.release_socket(), std::string{static_cast<const char*>(leftover.data()), leftover.size()},
            std::move(admission.session), std::move(admission.socket));
        worker_.add(*session);
        session->open(request);
    }

    Worker& worker_;
    Gateway& gateway_;
    Stream stream_;
    beast::flat_buffer buffer_{header_bytes_max};
};

} // namespace

void serve_http(Worker& worker, Socket socket) {
    auto executor = socket.get_executor();
    auto connection = std::make_unique<HttpConnection>(worker, std::move(socket));
    net::co_spawn(executor, [connection = std::move(connection)] { return connection->serve(); }, net::detached);
}

bool bears_token(std::string_view authorization, std::string_view token) noexcept {
    constexpr std::string_view scheme = "bearer ";
    const auto lower = [](char letter) {
        return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter | 0x20) : letter;
    };
    // The scheme is no secret, and its case does not matter (RFC 9110, section 11.1). Nor is the token's length one.
    if (authorization.size() != scheme.size() + token.size() ||
        !std::ranges::equal(authorization.substr(0, scheme.size()), scheme, {}, lower)) {
        return false;
    }
    authorization.remove_prefix(scheme.size());
    // Volatile, so that no compiler finds an early way out.
    volatile unsigned difference = 0;
    for (std::size_t index = 0; index < token.size(); ++index) {
        difference =
            difference | static_cast<unsigned>(static_cast<unsigned char>(authorization[index] ^ token[index]));
    }
    return difference == 0;
}

} // namespace stt
