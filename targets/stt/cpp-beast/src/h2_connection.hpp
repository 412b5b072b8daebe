// One HTTP/2 connection: nghttp2's protocol over an Asio socket.
//
// nghttp2 does no I/O; it is fed the bytes that were read, and asked for those to write. The audio is not copied on its
// way: DATA frames are written from the sessions' blocks, all frames that are ready with one `writev`.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <nghttp2/nghttp2.h>

#include <boost/asio/buffer.hpp>

#include "asio.hpp"
#include "audio_chain.hpp"
#include "config.hpp"
#include "inference_client.hpp"

namespace stt {

class H2Connection : public std::enable_shared_from_this<H2Connection> {
public:
    H2Connection(net::io_context& io, const Config& config);
    ~H2Connection();
    H2Connection(const H2Connection&) = delete;
    H2Connection& operator=(const H2Connection&) = delete;
    H2Connection(H2Connection&&) = delete;
    H2Connection& operator=(H2Connection&&) = delete;

    /// Begins to connect. Requests may be submitted from now on.
    void connect();

    [[nodiscard]] bool takes_requests() const;

    [[nodiscard]] std::unique_ptr<PendingCall> submit(AudioChain audio, AnswerSink& sink);

    /// Ends the connection; what is in flight fails.
    void close() { fail("closed"); }

private:
    class Call;
    struct Callbacks;
    using Body = std::shared_ptr<const AudioChain>;

    enum class State : std::uint8_t { connecting, open, closed };

    /// A stream, from the request to its end. The call may be given up before.
    struct Exchange {
        Call* call = nullptr;
        Body body;
        std::size_t sent_bytes = 0;
        /// Its audio waits for its turn.
        bool is_deferred = false;
        std::optional<std::uint16_t> status;
        std::string answer;
    };

    /// A call that has ended and whose sink has not been told.
    struct Finished {
        Call* call;
        InferenceResult result;
    };

    /// A part of the next write: bytes of `copied_` when `external` is null.
    struct Segment {
        const std::byte* external;
        std::size_t offset;
        std::size_t size;
    };

    template <class Endpoints> void connect_to(const Endpoints& endpoints);
    void on_connected(error_code ec);
    void read();
    void on_readable(error_code ec);
    void read_ready();
    [[nodiscard]] bool may_upload(std::int32_t stream_id) const;
    void end_upload(std::int32_t stream_id);
    void write_soon();
    void write();
    void on_writable(error_code ec);
    void consume(std::size_t written);
    bool gather();
    void copy(const void* data, std::size_t size);
    void fail(std::string_view cause);

    void give_up(Call& call);
    void finish(Exchange& exchange, InferenceResult result);
    void tell_finished();

    Socket socket_;
    net::ip::basic_resolver<tcp, Executor> resolver_;
    Timer connect_timer_;
    const Config& config_;
    State state_ = State::connecting;
    std::unique_ptr<nghttp2_session, decltype(&nghttp2_session_del)> session_{nullptr, nghttp2_session_del};
    std::unordered_map<std::int32_t, Exchange> exchanges_;
    /// Streams whose audio is not sent yet, in the order of their requests.
    std::deque<std::int32_t> uploads_;
    std::vector<Finished> finished_;
    /// The header fields' values.
    std::string cpu_passes_;

    std::array<std::uint8_t, std::size_t{16} * 1024> read_buffer_{};
    bool is_waiting_to_write_ = false;
    bool is_write_posted_ = false;
    std::vector<std::byte> copied_;
    std::vector<Segment> segments_;
    std::vector<net::const_buffer> write_buffers_;
    /// The bodies that are being written; their blocks must not go back to the pool, whatever becomes of their calls.
    std::vector<Body> pinned_;
};

} // namespace stt
