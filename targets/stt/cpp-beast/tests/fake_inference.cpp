#include "fake_inference.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <string_view>
#include <system_error>

#include <netinet/in.h>
#include <nghttp2/nghttp2.h>
#include <sys/socket.h>
#include <unistd.h>

namespace stt {

struct FakeInference::Connection {
    struct Stream {
        std::size_t audio_bytes = 0;
        std::string body;
        std::size_t sent_bytes = 0;
    };

    FakeInference& server;
    int socket;
    std::map<std::int32_t, Stream> streams;
    bool must_disconnect = false;

    static Connection& self(void* user_data) { return *static_cast<Connection*>(user_data); }

    static int on_data(nghttp2_session* /*session*/, std::uint8_t /*flags*/, std::int32_t id,
                       const std::uint8_t* /*data*/, std::size_t size, void* user_data) {
        self(user_data).streams[id].audio_bytes += size;
        return 0;
    }

    static int on_frame(nghttp2_session* session, const nghttp2_frame* frame, void* user_data) {
        auto& connection = self(user_data);
        if (frame->hd.type == NGHTTP2_RST_STREAM) {
            ++connection.server.streams_reset_;
        }
        if (frame->hd.type == NGHTTP2_DATA && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) {
            ++connection.server.requests_;
            connection.answer(session, frame->hd.stream_id);
        }
        return 0;
    }

    static ssize_t read_body(nghttp2_session* /*session*/, std::int32_t id, std::uint8_t* buffer, std::size_t size_max,
                             std::uint32_t* flags, nghttp2_data_source* /*source*/, void* user_data) {
        auto& stream = self(user_data).streams[id];
        const auto size = std::min(size_max, stream.body.size() - stream.sent_bytes);
        std::memcpy(buffer, stream.body.data() + stream.sent_bytes, size);
        stream.sent_bytes += size;
        *flags |= stream.sent_bytes == stream.body.size() ? NGHTTP2_DATA_FLAG_EOF : NGHTTP2_DATA_FLAG_NONE;
        return static_cast<ssize_t>(size);
    }

    void answer(nghttp2_session* session, std::int32_t id) {
        const auto mode = server.mode_.load();
        if (mode == Mode::never) {
            return;
        }
        if (mode == Mode::disconnect) {
            must_disconnect = true;
            return;
        }
        auto& stream = streams[id];
        const auto bytes = std::to_string(stream.audio_bytes);
        stream.body = mode == Mode::garbage ? "busy"
                                            : R"({"rms":1.5,"zero_crossings":2,"checksum":3,"samples":)" + bytes +
                                                  R"(,"transcript":"w\"rd","audio_bytes":)" + bytes + "}";
        std::string name = ":status";
        std::string value = mode == Mode::unavailable ? "503" : "200";
        nghttp2_nv status{reinterpret_cast<std::uint8_t*>(name.data()), reinterpret_cast<std::uint8_t*>(value.data()),
                          name.size(), value.size(), NGHTTP2_NV_FLAG_NONE};
        const nghttp2_data_provider body{.source = {.ptr = nullptr}, .read_callback = read_body};
        nghttp2_submit_response(session, id, &status, 1, &body);
    }

    void serve() {
        nghttp2_session_callbacks* callbacks = nullptr;
        nghttp2_session_callbacks_new(&callbacks);
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
        nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
        nghttp2_session* raw = nullptr;
        nghttp2_session_server_new(&raw, callbacks, this);
        nghttp2_session_callbacks_del(callbacks);
        const std::unique_ptr<nghttp2_session, decltype(&nghttp2_session_del)> session{raw, nghttp2_session_del};
        nghttp2_submit_settings(raw, NGHTTP2_FLAG_NONE, nullptr, 0);
        std::array<std::uint8_t, 65'536> buffer{};
        while (write_all(raw) && !must_disconnect) {
            const auto received = ::recv(socket, buffer.data(), buffer.size(), 0);
            if (received <= 0 || nghttp2_session_mem_recv(raw, buffer.data(), static_cast<std::size_t>(received)) < 0) {
                return;
            }
        }
    }

    [[nodiscard]] bool write_all(nghttp2_session* session) const {
        for (;;) {
            const std::uint8_t* data = nullptr;
            const auto size = nghttp2_session_mem_send(session, &data);
            if (size <= 0) {
                return size == 0;
            }
            if (::send(socket, data, static_cast<std::size_t>(size), MSG_NOSIGNAL) != size) {
                return false;
            }
        }
    }
};

FakeInference::FakeInference() : listener_{::socket(AF_INET, SOCK_STREAM, 0)} {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    socklen_t size = sizeof address;
    if (listener_ < 0 || ::bind(listener_, generic, size) != 0 || ::listen(listener_, 8) != 0 ||
        ::getsockname(listener_, generic, &size) != 0) {
        throw std::system_error{errno, std::system_category()};
    }
    port_ = ntohs(address.sin_port);
    thread_ = std::thread{[this] { accept_all(); }};
}

FakeInference::~FakeInference() {
    is_stopping_ = true;
    ::shutdown(listener_, SHUT_RDWR);
    ::shutdown(connection_, SHUT_RDWR);
    thread_.join();
    ::close(listener_);
}

void FakeInference::accept_all() {
    while (!is_stopping_) {
        const auto socket = ::accept(listener_, nullptr, nullptr);
        if (socket < 0) {
            continue;
        }
        connection_ = socket;
        Connection{.server = *this, .socket = socket, .streams = {}}.serve();
        connection_ = -1;
        ::close(socket);
    }
}

} // namespace stt
