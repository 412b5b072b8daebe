// What this program is made of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace stt {

/// The line that the gateway prints on start: one JSON object with the versions of compiler and libraries.
[[nodiscard]] std::string start_line(std::uint16_t port, std::size_t worker_threads);

} // namespace stt
