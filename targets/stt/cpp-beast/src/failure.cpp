#include "failure.hpp"

namespace stt {

std::string_view stage_of(FailureKind kind) noexcept {
    switch (kind) {
    case FailureKind::parse_error:
        return "inference_response_parse";
    case FailureKind::overflow:
        return "input_buffer";
    default:
        return "inference_request";
    }
}

std::string_view name_of(FailureKind kind) noexcept {
    switch (kind) {
    case FailureKind::timeout:
        return "timeout";
    case FailureKind::connection_reset:
        return "connection_reset";
    case FailureKind::http_429:
        return "http_429";
    case FailureKind::http_5xx:
        return "http_5xx";
    case FailureKind::http_4xx:
        return "http_4xx";
    case FailureKind::parse_error:
        return "parse_error";
    case FailureKind::overflow:
        return "overflow";
    }
    return "unknown";
}

bool is_retryable(FailureKind kind) noexcept {
    switch (kind) {
    case FailureKind::timeout:
    case FailureKind::connection_reset:
    case FailureKind::http_429:
    case FailureKind::http_5xx:
        return true;
    default:
        return false;
    }
}

Failure Failure::timeout() {
    return {.kind = FailureKind::timeout, .message = "no answer from inference in time"};
}

Failure Failure::connection(std::string_view cause) {
    return {.kind = FailureKind::connection_reset, .message = "inference connection: " + std::string{cause}};
}

Failure Failure::parse(std::string_view cause) {
    return {.kind = FailureKind::parse_error, .message = "inference answer: " + std::string{cause}, .status = 200};
}

Failure Failure::overflow() {
    return {.kind = FailureKind::overflow, .message = "input buffer full, frames dropped"};
}

Failure Failure::from_status(std::uint16_t status) {
    // Neither the promised answer nor an HTTP error: what came is nothing that the contract lets us parse.
    auto kind = FailureKind::parse_error;
    if (status == 429) {
        kind = FailureKind::http_429;
    } else if (status >= 500 && status <= 599) {
        kind = FailureKind::http_5xx;
    } else if (status >= 400 && status <= 499) {
        kind = FailureKind::http_4xx;
    }
    return {.kind = kind, .message = "inference answered with status " + std::to_string(status), .status = status};
}

} // namespace stt
