// Why a range of frames has no transcript: the rows of the contract's error table.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stt {

enum class FailureKind : std::uint8_t {
    timeout,
    connection_reset,
    http_429,
    http_5xx,
    http_4xx,
    parse_error,
    overflow,
};

/// Every kind, in the order of the enumerators, so that a kind indexes an array of this size.
inline constexpr std::array failure_kinds{
    FailureKind::timeout,  FailureKind::connection_reset, FailureKind::http_429, FailureKind::http_5xx,
    FailureKind::http_4xx, FailureKind::parse_error,      FailureKind::overflow,
};

/// The part of the gateway that failed, as `error.stage` names it.
[[nodiscard]] std::string_view stage_of(FailureKind kind) noexcept;

/// The row's name, as `error.kind` names it.
[[nodiscard]] std::string_view name_of(FailureKind kind) noexcept;

/// Whether the same audio could have been answered a moment later.
[[nodiscard]] bool is_retryable(FailureKind kind) noexcept;

/// A failure and what is known about it.
struct Failure {
    FailureKind kind;
    std::string message;
    /// The HTTP status of the answer, where there was one.
    std::optional<std::uint16_t> status = std::nullopt;

    static Failure timeout();
    static Failure connection(std::string_view cause);
    static Failure parse(std::string_view cause);
    static Failure overflow();

    /// For an answer whose status is not 200.
    static Failure from_status(std::uint16_t status);
};

} // namespace stt
