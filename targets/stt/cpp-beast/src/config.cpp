#include "config.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <thread>

namespace stt {

namespace {

/// Ten days: no duration here is sensibly longer, and sums of such durations stay far from overflow.
constexpr std::uint64_t milliseconds_max = std::uint64_t{10} * 24 * 3600 * 1000;

/// A violation must be answered within 500 ms, so reads may not be further apart than half of that.
constexpr std::uint64_t read_pace_max_ms = 250;

/// Reads variables until the first bad one, which it remembers.
class Variables {
public:
    explicit Variables(const Config::Lookup& lookup) : lookup_{lookup} {}

    template <class Number> Number number(const char* name, Number fallback, Number min, Number max) {
        const auto text = lookup_(name);
        if (!text) {
            return fallback;
        }
        Number value{};
        const auto* const end = text->data() + text->size();
        const auto [rest, error] = std::from_chars(text->data(), end, value);
        // from_chars takes a sign where the type has one; the variables have none.
        const bool digits_only = !text->empty() && text->front() != '-';
        if (error != std::errc{} || rest != end || !digits_only || value < min || value > max) {
            fail(name, *text, "give a whole number from " + std::to_string(min) + " to " + std::to_string(max));
            return fallback;
        }
        return value;
    }

    Duration milliseconds(const char* name, std::uint64_t fallback, std::uint64_t min,
                          std::uint64_t max = milliseconds_max) {
        return std::chrono::milliseconds{number<std::uint64_t>(name, fallback, min, max)};
    }

    std::string text(const char* name) { return lookup_(name).value_or(""); }

    InferenceUrl url(const char* name, const char* fallback) {
        const auto text = lookup_(name).value_or(fallback);
        auto url = InferenceUrl::parse(text);
        if (!url) {
            fail(name, text, url.error());
            return {};
        }
        return std::move(*url);
    }

    OverflowPolicy overflow_policy(const char* name) {
        const auto text = lookup_(name).value_or("drop_oldest");
        if (text == "drop_newest") {
            return OverflowPolicy::drop_newest;
        }
        if (text == "close") {
            return OverflowPolicy::close;
        }
        if (text != "drop_oldest") {
            fail(name, text, "give drop_oldest, drop_newest or close");
        }
        return OverflowPolicy::drop_oldest;
    }

    [[nodiscard]] const std::optional<std::string>& error() const noexcept { return error_; }

private:
    void fail(const char* name, std::string value, const std::string& problem) {
        if (!error_) {
            // One line, whatever the value is.
            std::ranges::replace_if(
                value, [](char character) { return static_cast<unsigned char>(character) < 0x20; }, '?');
            error_ = std::string{name} + "=\"" + value + "\": " + problem;
        }
    }

    const Config::Lookup& lookup_;
    std::optional<std::string> error_;
};

std::optional<std::uint16_t> parse_port(std::string_view text) {
    std::uint16_t port = 0;
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), port);
    return error == std::errc{} && rest == text.data() + text.size() && port != 0 ? std::optional{port} : std::nullopt;
}

} // namespace

std::expected<InferenceUrl, std::string> InferenceUrl::parse(std::string_view text) {
    constexpr std::string_view scheme = "http://";
    const auto wrong = std::unexpected{std::string{"not of the form http://host:port"}};
    const bool printable =
        std::ranges::all_of(text, [](char character) { return character > ' ' && character < '\x7f'; });
    if (!text.starts_with(scheme) || !printable || text.find_first_of("?#@") != std::string_view::npos) {
        return wrong;
    }
    text.remove_prefix(scheme.size());
    const auto slash = std::min(text.find('/'), text.size());
    const auto authority = text.substr(0, slash);
    auto path = text.substr(slash);
    while (path.ends_with('/')) {
        path.remove_suffix(1);
    }
    const auto bracket = authority.starts_with('[') ? authority.find(']') : 0;
    if (bracket == std::string_view::npos) {
        return wrong;
    }
    const auto colon = authority.find(':', bracket);
    InferenceUrl url;
    url.host = bracket != 0 ? authority.substr(1, bracket - 1) : authority.substr(0, colon);
    if (colon != std::string_view::npos) {
        const auto port = parse_port(authority.substr(colon + 1));
        if (!port) {
            return wrong;
        }
        url.port = *port;
    }
    if (url.host.empty()) {
        return wrong;
    }
    url.authority = authority;
    url.path = std::string{path} + "/infer";
    return url;
}

std::expected<Config, std::string> Config::from_lookup(const Lookup& lookup) {
    constexpr auto size_max = std::numeric_limits<std::size_t>::max();
    constexpr std::size_t million = 1'000'000;
    Variables variables{lookup};
    Config config;
    config.port = variables.number<std::uint16_t>("PORT", 3000, 1, std::numeric_limits<std::uint16_t>::max());
    const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
    config.worker_threads = variables.number<std::size_t>("WORKER_THREADS", cores, 1, 1024);
    config.inference_url = variables.url("INFERENCE_URL", "http://127.0.0.1:9000");
    config.inference_connections = variables.number<std::size_t>("INFERENCE_HTTP_CLIENTS", 1, 1, 4096);
    config.flush_phase_jitter = variables.milliseconds("FLUSH_PHASE_JITTER_MS", 1000, 0);
    config.sessions_max = variables.number<std::size_t>("MAX_SESSIONS", 0, 0, size_max);
    config.jobs_max = variables.number<std::size_t>("MAX_INFLIGHT_JOBS", 0, 0, size_max);
    config.drain_timeout = variables.milliseconds("DRAIN_TIMEOUT_MS", 5000, 0);
    config.auth_token = variables.text("AUTH_TOKEN");
    config.read_pace = variables.milliseconds("READ_PACE_MS", 0, 0, read_pace_max_ms);
    auto& session = config.session;
    session.flush_interval = variables.milliseconds("FLUSH_INTERVAL_MS", 1000, 1);
    session.start_timeout = variables.milliseconds("START_TIMEOUT_MS", 10'000, 1);
    session.inference_timeout = variables.milliseconds("INFERENCE_TIMEOUT_MS", 5000, 1);
    session.buffer_frames_max = variables.number<std::size_t>("MAX_BUFFER_FRAMES", 500, 1, million);
    session.overflow_policy = variables.overflow_policy("OVERFLOW_POLICY");
    session.outbox_messages_max = variables.number<std::size_t>("OUTBOX_MESSAGES", 4, 1, million);
    session.echo.cpu_passes =
        variables.number<std::uint32_t>("CPU_PASSES", 4, 1, std::numeric_limits<std::uint32_t>::max());
    if (const auto& error = variables.error()) {
        return std::unexpected{*error};
    }
    return config;
}

std::expected<Config, std::string> Config::from_environment() {
    return from_lookup([](const char* name) -> std::optional<std::string> {
        // Called before the first thread.
        const char* const value = std::getenv(name); // NOLINT(concurrency-mt-unsafe)
        return value == nullptr ? std::nullopt : std::optional<std::string>{value};
    });
}

} // namespace stt
