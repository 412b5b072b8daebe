// The Asio types of this program.
//
// Everything is bound to `io_context`'s own executor and not to Asio's default, `any_io_executor`, whose type erasure
// costs an indirect call and a reference count for each operation.
#pragma once

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/system/error_code.hpp>

#include "clock.hpp"

namespace stt {

namespace net = boost::asio;
using boost::system::error_code;
using tcp = net::ip::tcp;

using Executor = net::io_context::executor_type;
using Socket = net::basic_stream_socket<tcp, Executor>;
using Acceptor = net::basic_socket_acceptor<tcp, Executor>;
using Timer = net::basic_waitable_timer<Clock, net::wait_traits<Clock>, Executor>;

} // namespace stt
