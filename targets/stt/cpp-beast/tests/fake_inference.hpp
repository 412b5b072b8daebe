// An inference server for tests: HTTP/2 with nghttp2 over blocking sockets, one connection at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>

namespace stt {

class FakeInference {
public:
    enum class Mode : std::uint8_t { answer, unavailable, garbage, never, disconnect };

    FakeInference();
    ~FakeInference();
    FakeInference(const FakeInference&) = delete;
    FakeInference& operator=(const FakeInference&) = delete;
    FakeInference(FakeInference&&) = delete;
    FakeInference& operator=(FakeInference&&) = delete;

    [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
    void set_mode(Mode mode) { mode_ = mode; }
    [[nodiscard]] int requests() const { return requests_; }
    [[nodiscard]] int streams_reset() const { return streams_reset_; }

private:
    struct Connection;

    void accept_all();

    int listener_ = -1;
    std::uint16_t port_ = 0;
    std::atomic<int> connection_ = -1;
    std::atomic<bool> is_stopping_ = false;
    std::atomic<Mode> mode_ = Mode::answer;
    std::atomic<int> requests_ = 0;
    std::atomic<int> streams_reset_ = 0;
    std::thread thread_;
};

} // namespace stt
