// The configuration, from environment variables, checked before anything starts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "clock.hpp"
#include "session.hpp"

namespace stt {

/// `http://host[:port][/path]`.
struct InferenceUrl {
    /// Name or address; an IPv6 address without its brackets.
    std::string host;
    std::uint16_t port = 80;
    /// `host[:port]` as it was given, for the request's `:authority`.
    std::string authority;
    /// The path of requests, `…/infer`.
    std::string path;

    static std::expected<InferenceUrl, std::string> parse(std::string_view text);
};

struct Config {
    std::uint16_t port = 3000;
    std::size_t worker_threads = 1;
    InferenceUrl inference_url;
    /// HTTP/2 connections of each worker.
    std::size_t inference_connections = 1;
    Duration flush_phase_jitter{};
    std::size_t sessions_max = 0;
    std::size_t jobs_max = 0;
    Duration drain_timeout{};
    std::string auth_token;
    /// Zero: read as soon as there is something.
    Duration read_pace{};
    SessionSettings session;

    /// The value of a variable, or none where it is not set.
    using Lookup = std::function<std::optional<std::string>(const char* name)>;

    /// An error is one line that names the variable.
    static std::expected<Config, std::string> from_lookup(const Lookup& lookup);
    static std::expected<Config, std::string> from_environment();
};

} // namespace stt
