// What nghttp2 tells an `H2Connection`, and what it asks of it. Included by h2_connection.cpp alone.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <new>
#include <string>
#include <string_view>

#include <sys/types.h>

#include <nghttp2/nghttp2.h>

#include "h2_connection.hpp"

namespace stt {

/// A good answer has some 150 bytes.
constexpr std::size_t answer_bytes_max = std::size_t{64} * 1024;

/// nghttp2's one error that nothing can be done about.
inline void check_memory(int rv) {
    if (rv == NGHTTP2_ERR_NOMEM) {
        throw std::bad_alloc{};
    }
}

/// What nghttp2 calls. It must not be asked for output from within, and sinks are told afterwards.
struct H2Connection::Callbacks {
    static H2Connection& self(void* user_data) { return *static_cast<H2Connection*>(user_data); }

    static Exchange* find(void* user_data, std::int32_t stream_id) {
        auto& exchanges = self(user_data).exchanges_;
        const auto found = exchanges.find(stream_id);
        return found == exchanges.end() ? nullptr : &found->second;
    }

    static int on_header(nghttp2_session* /*session*/, const nghttp2_frame* frame, const std::uint8_t* name,
                         std::size_t name_size, const std::uint8_t* value, std::size_t value_size,
                         std::uint8_t /*flags*/, void* user_data) {
        const auto text = [](const std::uint8_t* data, std::size_t size) {
            return std::string_view{reinterpret_cast<const char*>(data), size};
        };
        if (text(name, name_size) == ":status") {
            if (auto* exchange = find(user_data, frame->hd.stream_id)) {
                std::uint16_t status = 0;
                const auto digits = text(value, value_size);
                std::from_chars(digits.data(), digits.data() + digits.size(), status);
                exchange->status = status;
            }
        }
        return 0;
    }

    static int on_data(nghttp2_session* session, std::uint8_t /*flags*/, std::int32_t stream_id,
                       const std::uint8_t* data, std::size_t size, void* user_data) {
        auto* exchange = find(user_data, stream_id);
        if (exchange == nullptr || exchange->call == nullptr) {
            return 0;
        }
        if (exchange->answer.size() + size > answer_bytes_max) {
            self(user_data).finish(*exchange, std::unexpected{Failure::parse("longer than 64 KiB")});
            check_memory(nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, stream_id, NGHTTP2_CANCEL));
            return 0;
        }
        exchange->answer.append(reinterpret_cast<const char*>(data), size);
        return 0;
    }

    static int on_frame(nghttp2_session* session, const nghttp2_frame* frame, void* user_data) {
        const bool ends = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0 &&
                          (frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA);
        auto* exchange = ends ? find(user_data, frame->hd.stream_id) : nullptr;
        if (exchange == nullptr) {
            return 0;
        }
        const auto status = exchange->status.value_or(0);
        self(user_data).finish(*exchange, status == 200
                                              ? parse_answer(exchange->answer)
                                              : InferenceResult{std::unexpected{Failure::from_status(status)}});
        // An answer that did not wait for the whole request: the rest of the audio is wanted by nobody.
        if (nghttp2_session_get_stream_local_close(session, frame->hd.stream_id) == 0) {
            check_memory(nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id, NGHTTP2_CANCEL));
        }
        return 0;
    }

    static int on_stream_close(nghttp2_session* /*session*/, std::int32_t stream_id, std::uint32_t error_code,
                               void* user_data) {
        if (auto* exchange = find(user_data, stream_id)) {
            self(user_data).finish(*exchange, std::unexpected{Failure::connection(std::string{"stream ended: "} +
                                                                                  nghttp2_http2_strerror(error_code))});
            self(user_data).exchanges_.erase(stream_id);
            self(user_data).end_upload(stream_id);
        }
        return 0;
    }

    /// A request that could not be sent; there is no stream whose close would be told.
    static int on_not_sent(nghttp2_session* /*session*/, const nghttp2_frame* frame, int error, void* user_data) {
        auto* exchange = frame->hd.type == NGHTTP2_HEADERS ? find(user_data, frame->hd.stream_id) : nullptr;
        if (exchange != nullptr) {
            self(user_data).finish(*exchange, std::unexpected{Failure::connection(nghttp2_strerror(error))});
            self(user_data).exchanges_.erase(frame->hd.stream_id);
            self(user_data).end_upload(frame->hd.stream_id);
        }
        return 0;
    }

    /// How much of the body goes into the next DATA frame; `send_body` writes it.
    static ssize_t read_body(nghttp2_session* /*session*/, std::int32_t stream_id, std::uint8_t* /*buffer*/,
                             std::size_t size_max, std::uint32_t* flags, nghttp2_data_source* /*source*/,
                             void* user_data) {
        auto* exchange = find(user_data, stream_id);
        if (exchange == nullptr || !exchange->body) {
            return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
        }
        if (!self(user_data).may_upload(stream_id)) {
            exchange->is_deferred = true;
            return NGHTTP2_ERR_DEFERRED;
        }
        const auto size = std::min(size_max, exchange->body->bytes_at(exchange->sent_bytes).size());
        *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
        if (exchange->sent_bytes + size == exchange->body->size_bytes()) {
            *flags |= NGHTTP2_DATA_FLAG_EOF;
        }
        return static_cast<ssize_t>(size);
    }

    static int send_body(nghttp2_session* /*session*/, nghttp2_frame* frame, const std::uint8_t* frame_header,
                         std::size_t size, nghttp2_data_source* /*source*/, void* user_data) {
        constexpr std::size_t frame_header_bytes = 9;
        auto* exchange = find(user_data, frame->hd.stream_id);
        if (exchange == nullptr || !exchange->body) {
            return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
        }
        auto& connection = self(user_data);
        connection.copy(frame_header, frame_header_bytes);
        connection.segments_.push_back(
            {.external = exchange->body->bytes_at(exchange->sent_bytes).data(), .offset = 0, .size = size});
        exchange->sent_bytes += size;
        connection.pinned_.push_back(exchange->body);
        if (exchange->sent_bytes == exchange->body->size_bytes()) {
            exchange->body.reset();
            connection.end_upload(frame->hd.stream_id);
        }
        return 0;
    }
};

} // namespace stt
