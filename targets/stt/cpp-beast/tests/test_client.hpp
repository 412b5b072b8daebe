// A WebSocket client for tests that can also break the rules: one blocking socket, frames as they are.
#pragma once

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

namespace stt {

class TestClient {
public:
    struct Frame {
        int opcode;
        std::string payload;

        [[nodiscard]] int close_code() const {
            return opcode == 8 && payload.size() >= 2
                       ? static_cast<unsigned char>(payload[0]) * 256 + static_cast<unsigned char>(payload[1])
                       : 0;
        }
    };

    explicit TestClient(std::uint16_t port) : socket_{::socket(AF_INET, SOCK_STREAM, 0)} {
        const timeval limit{.tv_sec = 5, .tv_usec = 0};
        ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        address.sin_port = htons(port);
        if (::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
            throw std::system_error{errno, std::system_category()};
        }
    }
    ~TestClient() { ::close(socket_); }
    TestClient(const TestClient&) = delete;
    TestClient& operator=(const TestClient&) = delete;
    TestClient(TestClient&&) = delete;
    TestClient& operator=(TestClient&&) = delete;

    static std::string upgrade_request(std::string_view more_headers = "") {
        return "GET /ws/stt HTTP/1.1\r\nHost: gateway\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
               "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n" +
               std::string{more_headers} + "\r\n";
    }

    static std::string frame(int first_byte, std::string_view payload,
                             std::optional<std::uint64_t> declared = std::nullopt, bool is_masked = true) {
        const auto size = declared.value_or(payload.size());
        const int mask_bit = is_masked ? 0x80 : 0;
        std::string bytes{static_cast<char>(first_byte)};
        const auto append_size = [&bytes, size](int count) {
            for (int shift = (count - 1) * 8; shift >= 0; shift -= 8) {
                bytes += static_cast<char>((size >> shift) & 0xFF);
            }
        };
        if (size < 126) {
            bytes += static_cast<char>(mask_bit | static_cast<int>(size));
        } else {
            bytes += static_cast<char>(mask_bit | (size < 65'536 ? 126 : 127));
            append_size(size < 65'536 ? 2 : 8);
        }
        constexpr std::string_view key = "\x12\x34\x56\x78";
        bytes += is_masked ? key : "";
        for (std::size_t index = 0; index < payload.size(); ++index) {
            bytes += static_cast<char>(is_masked ? payload[index] ^ key[index % 4] : payload[index]);
        }
        return bytes;
    }

    static std::string text(std::string_view payload) { return frame(0x81, payload); }
    static std::string audio(std::size_t count) {
        std::string all;
        for (std::size_t index = 0; index < count; ++index) {
            all += frame(0x82, std::string(640, 'a'));
        }
        return all;
    }
    static std::string start() { return text(R"({"type":"start"})"); }

    void send(std::string_view bytes) { std::ignore = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL); }

    /// The head of an HTTP answer.
    std::string read_head() {
        for (;;) {
            if (const auto end = received_.find("\r\n\r\n"); end != std::string::npos) {
                auto head = received_.substr(0, end + 4);
                received_.erase(0, end + 4);
                return head;
            }
            if (!receive()) {
                return received_;
            }
        }
    }

    /// The next frame; none when the connection ends, or nothing comes for five seconds.
    std::optional<Frame> read_frame() {
        for (;;) {
            if (received_.size() >= 2) {
                const auto short_size = static_cast<std::size_t>(received_[1]);
                const std::size_t header = short_size == 126 ? 4 : 2;
                const auto byte = [this](std::size_t index) {
                    return static_cast<std::size_t>(static_cast<unsigned char>(received_[index]));
                };
                const auto size = header == 2            ? short_size
                                  : received_.size() < 4 ? received_.size()
                                                         : (byte(2) << 8U) + byte(3);
                if (received_.size() >= header + size) {
                    Frame frame{.opcode = received_[0] & 0xF, .payload = received_.substr(header, size)};
                    received_.erase(0, header + size);
                    return frame;
                }
            }
            if (!receive()) {
                return std::nullopt;
            }
        }
    }

    /// Reads until the close; its code, or 0.
    int read_close() {
        while (const auto frame = read_frame()) {
            if (frame->opcode == 8) {
                return frame->close_code();
            }
        }
        return 0;
    }

private:
    bool receive() {
        std::array<char, 4096> buffer{};
        const auto size = ::recv(socket_, buffer.data(), buffer.size(), 0);
        if (size > 0) {
            received_.append(buffer.data(), static_cast<std::size_t>(size));
        }
        return size > 0;
    }

    int socket_;
    std::string received_;
};

} // namespace stt
