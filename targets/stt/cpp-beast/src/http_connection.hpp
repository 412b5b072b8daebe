// A connection while it is HTTP: health, metrics, and who is let in.
#pragma once

#include <string_view>

#include "asio.hpp"
#include "worker.hpp"

namespace stt {

/// Serves a connection that was just accepted, until it ends or becomes a session.
void serve_http(Worker& worker, Socket socket);

/// Whether `authorization` is `Bearer <token>`, in a time that does not tell how much of the token is right.
[[nodiscard]] bool bears_token(std::string_view authorization, std::string_view token) noexcept;

} // namespace stt
