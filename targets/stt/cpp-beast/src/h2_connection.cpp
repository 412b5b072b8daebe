#include "h2_connection.hpp"

#include <algorithm>
#include <new>
#include <span>
#include <system_error>
#include <utility>

#include <netinet/tcp.h>

#include <boost/asio/connect.hpp>
#include <boost/asio/detail/socket_option.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/post.hpp>

#include "h2_callbacks.hpp"

namespace stt {

namespace {

using UserTimeout = net::detail::socket_option::integer<IPPROTO_TCP, TCP_USER_TIMEOUT>;

/// Credit that the server has for answers: enough that it never waits for more, whatever the number of streams.
constexpr std::int32_t connection_window_bytes = 4 * 1024 * 1024;

/// Streams to open before the server has said how many it allows. nghttp2 assumes 100, which would hold back the first
/// second of a full gateway.
constexpr std::uint32_t streams_before_settings = 10'000;

constexpr auto connect_timeout = std::chrono::seconds{5};

/// A peer that acknowledges nothing for this long is gone.
constexpr int user_timeout_ms = 10'000;

/// About as many buffers as one `writev` takes through Asio (64): more would only be cut up again.
constexpr std::size_t segments_max = 60;

/// Requests whose audio is on its way at the same time. nghttp2 would send all of them in turns, and when the gateway is
/// behind none would be through before it times out. Several, for one may wait for its stream's window.
constexpr std::ptrdiff_t uploads_at_once = 8;

/// Writes in one turn, some 200 KB each.
constexpr int writes_per_turn = 32;

/// Reads in one turn.
constexpr int reads_per_turn = 16;

/// nghttp2 copies what it keeps, so the constness that it asks to be cast away is respected.
nghttp2_nv header(std::string_view name, std::string_view value) {
    const auto bytes = [](std::string_view text) {
        return const_cast<std::uint8_t*>(reinterpret_cast<const std::uint8_t*>(text.data())); // NOLINT(*-const-cast)
    };
    return {bytes(name), bytes(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NONE};
}

} // namespace

/// A request in flight, as its session holds it.
class H2Connection::Call final : public PendingCall {
public:
    Call(std::shared_ptr<H2Connection> connection, std::int32_t stream_id, AnswerSink& sink)
        : connection_{std::move(connection)}, stream_id_{stream_id}, sink_{&sink} {}
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    Call(Call&&) = delete;
    Call& operator=(Call&&) = delete;
    ~Call() override { connection_->give_up(*this); }

    [[nodiscard]] std::int32_t stream_id() const noexcept { return stream_id_; }
    [[nodiscard]] AnswerSink& sink() const noexcept { return *sink_; }

private:
    std::shared_ptr<H2Connection> connection_;
    std::int32_t stream_id_;
    AnswerSink* sink_;
};

H2Connection::H2Connection(net::io_context& io, const Config& config)
    : socket_{io}, resolver_{io}, connect_timer_{io}, config_{config},
      cpu_passes_{std::to_string(config.session.echo.cpu_passes)} {
    nghttp2_session_callbacks* raw_callbacks = nullptr;
    check_memory(nghttp2_session_callbacks_new(&raw_callbacks));
    const std::unique_ptr<nghttp2_session_callbacks, decltype(&nghttp2_session_callbacks_del)> callbacks{
        raw_callbacks, nghttp2_session_callbacks_del};
    nghttp2_session_callbacks_set_on_header_callback(raw_callbacks, Callbacks::on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(raw_callbacks, Callbacks::on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(raw_callbacks, Callbacks::on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(raw_callbacks, Callbacks::on_stream_close);
    nghttp2_session_callbacks_set_on_frame_not_send_callback(raw_callbacks, Callbacks::on_not_sent);
    nghttp2_session_callbacks_set_send_data_callback(raw_callbacks, Callbacks::send_body);

    nghttp2_option* raw_option = nullptr;
    check_memory(nghttp2_option_new(&raw_option));
    const std::unique_ptr<nghttp2_option, decltype(&nghttp2_option_del)> option{raw_option, nghttp2_option_del};
    nghttp2_option_set_peer_max_concurrent_streams(raw_option, streams_before_settings);

    nghttp2_session* raw_session = nullptr;
    check_memory(nghttp2_session_client_new2(&raw_session, raw_callbacks, this, raw_option));
    session_.reset(raw_session);
    const std::array settings{nghttp2_settings_entry{NGHTTP2_SETTINGS_ENABLE_PUSH, 0}};
    check_memory(nghttp2_submit_settings(raw_session, NGHTTP2_FLAG_NONE, settings.data(), settings.size()));
    check_memory(nghttp2_session_set_local_window_size(raw_session, NGHTTP2_FLAG_NONE, 0, connection_window_bytes));
}

H2Connection::~H2Connection() = default;

bool H2Connection::takes_requests() const {
    return state_ != State::closed && nghttp2_session_check_request_allowed(session_.get()) != 0;
}

std::unique_ptr<PendingCall> H2Connection::submit(AudioChain audio, AnswerSink& sink) {
    const auto size = std::to_string(audio.size_bytes());
    const auto& url = config_.inference_url;
    const std::array headers{
        header(":method", "POST"),
        header(":scheme", "http"),
        header(":authority", url.authority),
        header(":path", url.path),
        header("content-type", "application/octet-stream"),
        header("content-length", size),
        header("x-cpu-passes", cpu_passes_),
    };
    const nghttp2_data_provider provider{.source = {.ptr = nullptr}, .read_callback = Callbacks::read_body};
    const auto stream_id =
        nghttp2_submit_request(session_.get(), nullptr, headers.data(), headers.size(), &provider, nullptr);
    if (stream_id < 0) {
        // `takes_requests` has ruled out all else.
        throw std::bad_alloc{};
    }
    auto call = std::make_unique<Call>(shared_from_this(), stream_id, sink);
    auto& exchange = exchanges_[stream_id];
    exchange.call = call.get();
    exchange.body = std::make_shared<const AudioChain>(std::move(audio));
    uploads_.push_back(stream_id);
    write_soon();
    return call;
}

/// Whether it is the turn of this stream's audio: first come, first served.
bool H2Connection::may_upload(std::int32_t stream_id) const {
    const auto next = std::min(std::ssize(uploads_), uploads_at_once);
    const auto end = uploads_.begin() + next;
    return std::find(uploads_.begin(), end, stream_id) != end;
}

/// Its audio is sent, or nobody wants it any more: the next one's turn.
void H2Connection::end_upload(std::int32_t stream_id) {
    const auto found = std::ranges::find(uploads_, stream_id);
    if (found == uploads_.end()) {
        return;
    }
    uploads_.erase(found);
    for (std::ptrdiff_t index = 0; index < std::min(std::ssize(uploads_), uploads_at_once); ++index) {
        const auto next = exchanges_.find(uploads_[static_cast<std::size_t>(index)]);
        if (next != exchanges_.end() && std::exchange(next->second.is_deferred, false)) {
            check_memory(nghttp2_session_resume_data(session_.get(), next->first));
        }
    }
}

void H2Connection::connect() {
    auto self = shared_from_this();
    connect_timer_.expires_after(connect_timeout);
    connect_timer_.async_wait([self](error_code ec) {
        if (!ec && self->state_ == State::connecting) {
            self->fail("no connection in time");
        }
    });
    const auto& url = config_.inference_url;
    error_code not_numeric;
    const auto address = net::ip::make_address(url.host, not_numeric);
    if (!not_numeric) {
        connect_to(std::array{tcp::endpoint{address, url.port}});
        return;
    }
    resolver_.async_resolve(url.host, std::to_string(url.port),
                            [self](error_code ec, const tcp::resolver::results_type& results) {
                                if (ec) {
                                    return self->fail(ec.message());
                                }
                                self->connect_to(results);
                            });
}

template <class Endpoints> void H2Connection::connect_to(const Endpoints& endpoints) {
    net::async_connect(socket_, endpoints, [self = shared_from_this()](error_code ec, const auto& /*endpoint*/) {
        self->on_connected(ec);
    });
}

void H2Connection::on_connected(error_code ec) {
    if (state_ != State::connecting) {
        return;
    }
    if (!ec) {
        socket_.set_option(tcp::no_delay{true}, ec);
    }
    if (ec) {
        return fail(ec.message());
    }
    connect_timer_.cancel();
    error_code ignored; // Both only help to find out that a peer is gone.
    socket_.set_option(UserTimeout{user_timeout_ms}, ignored);
    socket_.set_option(Socket::keep_alive{true}, ignored);
    // For reads and writes that are made at once; without it they would wait for the kernel.
    socket_.non_blocking(true, ec);
    if (ec) {
        return fail(ec.message());
    }
    state_ = State::open;
    write();
    read();
}

/// Waits and does not read yet: what has come is read by whoever has the next turn, this or `write_soon`.
void H2Connection::read() {
    socket_.async_wait(Socket::wait_read, [self = shared_from_this()](error_code ec) { self->on_readable(ec); });
}

void H2Connection::on_readable(error_code ec) {
    if (ec) {
        return fail(ec.message());
    }
    read_ready();
    write();
    if (state_ != State::closed) {
        read();
    }
}

/// Takes in what has come.
void H2Connection::read_ready() {
    for (int reads = 0; reads < reads_per_turn && state_ == State::open; ++reads) {
        error_code ec;
        const auto received = socket_.read_some(net::buffer(read_buffer_), ec);
        if (ec == net::error::would_block) {
            return;
        }
        if (ec) {
            return fail(ec.message());
        }
        const auto taken = nghttp2_session_mem_recv(session_.get(), read_buffer_.data(), received);
        if (taken < 0) {
            return fail(nghttp2_strerror(static_cast<int>(taken)));
        }
        tell_finished();
        if (nghttp2_session_want_read(session_.get()) == 0 && nghttp2_session_want_write(session_.get()) == 0) {
            return fail("closed by the server");
        }
        if (received < read_buffer_.size()) {
            return;
        }
    }
}

/// Writes when all that is ready now has had its turn: the requests of many sessions then leave together.
///
/// And reads before, for when the gateway is behind the news that there is something to read comes late: epoll tells Asio of
/// 128 sockets at a time, once in a round of all sessions. Answers and the windows for further audio must not wait for that.
void H2Connection::write_soon() {
    if (is_write_posted_) {
        return;
    }
    is_write_posted_ = true;
    net::post(socket_.get_executor(), [self = shared_from_this()] {
        self->is_write_posted_ = false;
        self->read_ready();
        self->write();
    });
}

/// Writes what is ready, as much as the kernel takes; the rest when it takes more.
///
/// In many writes if need be: when the gateway is behind, this connection has one turn in a round of all sessions. With
/// `net::async_write`, which writes 64 KiB a turn, requests piled up here until all of them timed out.
void H2Connection::write() {
    if (state_ != State::open || is_waiting_to_write_) {
        return;
    }
    for (int writes = 0; writes < writes_per_turn; ++writes) {
        if (write_buffers_.empty() && !gather()) {
            return fail("cannot write");
        }
        if (write_buffers_.empty()) {
            return;
        }
        error_code ec;
        const auto written = socket_.write_some(std::span<const net::const_buffer>{write_buffers_}, ec);
        if (ec == net::error::would_block) {
            is_waiting_to_write_ = true;
            return socket_.async_wait(Socket::wait_write,
                                      [self = shared_from_this()](error_code ec) { self->on_writable(ec); });
        }
        if (ec) {
            return fail(ec.message());
        }
        consume(written);
    }
    write_soon();
}

void H2Connection::on_writable(error_code ec) {
    is_waiting_to_write_ = false;
    if (ec) {
        return fail(ec.message());
    }
    write();
}

/// Takes what was written off the front of `write_buffers_`.
void H2Connection::consume(std::size_t written) {
    auto first = write_buffers_.begin();
    while (first != write_buffers_.end() && first->size() <= written) {
        written -= first->size();
        ++first;
    }
    write_buffers_.erase(write_buffers_.begin(), first);
    if (!write_buffers_.empty()) {
        write_buffers_.front() += written;
    }
}

/// Asks nghttp2 for frames and collects them in `write_buffers_`, which are empty.
bool H2Connection::gather() {
    copied_.clear();
    segments_.clear();
    pinned_.clear();
    while (segments_.size() < segments_max) {
        const std::uint8_t* data = nullptr;
        const auto size = nghttp2_session_mem_send(session_.get(), &data);
        if (size < 0) {
            return false;
        }
        if (size == 0) {
            break;
        }
        copy(data, static_cast<std::size_t>(size));
    }
    // Only now, for `copied_` moves as it grows.
    for (const auto& segment : segments_) {
        const auto* const data = segment.external != nullptr ? segment.external : copied_.data() + segment.offset;
        write_buffers_.emplace_back(data, segment.size);
    }
    return true;
}

void H2Connection::copy(const void* data, std::size_t size) {
    const auto* const bytes = static_cast<const std::byte*>(data);
    const bool extends_last = !segments_.empty() && segments_.back().external == nullptr;
    if (extends_last) {
        segments_.back().size += size;
    } else {
        segments_.push_back({.external = nullptr, .offset = copied_.size(), .size = size});
    }
    copied_.insert(copied_.end(), bytes, bytes + size);
}

void H2Connection::fail(std::string_view cause) {
    if (state_ == State::closed) {
        return;
    }
    state_ = State::closed;
    error_code ignored;
    socket_.close(ignored);
    resolver_.cancel();
    connect_timer_.cancel();
    for (auto& [stream_id, exchange] : exchanges_) {
        finish(exchange, std::unexpected{Failure::connection(cause)});
    }
    exchanges_.clear();
    // Not from here: a session may be about to put its call in place.
    net::post(socket_.get_executor(), [self = shared_from_this()] { self->tell_finished(); });
}

void H2Connection::give_up(Call& call) {
    for (auto& finished : finished_) {
        if (finished.call == &call) {
            finished.call = nullptr;
        }
    }
    const auto found = exchanges_.find(call.stream_id());
    if (found == exchanges_.end() || found->second.call != &call) {
        return;
    }
    found->second.call = nullptr;
    if (state_ != State::closed) {
        end_upload(call.stream_id());
        check_memory(nghttp2_submit_rst_stream(session_.get(), NGHTTP2_FLAG_NONE, call.stream_id(), NGHTTP2_CANCEL));
        write_soon();
    }
}

void H2Connection::finish(Exchange& exchange, InferenceResult result) {
    if (auto* const call = std::exchange(exchange.call, nullptr)) {
        finished_.push_back({.call = call, .result = std::move(result)});
    }
}

void H2Connection::tell_finished() {
    // By index: whoever is told may give up another call, or begin one.
    for (std::size_t index = 0; index < finished_.size(); ++index) {
        if (auto* const call = std::exchange(finished_[index].call, nullptr)) {
            const auto result = std::move(finished_[index].result);
            call->sink().on_answer(result);
        }
    }
    finished_.clear();
}

} // namespace stt
