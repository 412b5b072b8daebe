// One client: the session's core tied to its WebSocket, its timer and the inference client.
#pragma once

#include <App.h>

#include <deque>
#include <memory>

#include "limit.hpp"
#include "session.hpp"
#include "timers.hpp"

namespace stt {

class Client;
class Worker;
struct Gateway;

/// The user data of a WebSocket. uWebSockets destroys it after the close handler, and the client with it.
struct PerSocketData {
  std::shared_ptr<Client> client;
};

using WebSocket = uWS::WebSocket<false, true, PerSocketData>;

/// It lives as long as its WebSocket; with it ends its place among `MAX_SESSIONS`. A shared pointer owns it only so that
/// the answer to a request can find out whether it still lives.
class Client : public std::enable_shared_from_this<Client> {
 public:
  Client(Worker& worker, Limit::Permit place);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // The handlers of its WebSocket.
  void opened(WebSocket* ws);
  void take(std::string_view message, uWS::OpCode opcode);
  /// Sends on what waits in the outbox, as far as the socket takes it.
  void send_more();

  /// Closes with 1001, after the answer to what is in flight.
  void drain();

  /// Closes with 1001, at once.
  void go_away();

 private:
  /// Sends a close frame. uWebSockets destroys the user data within, so the client is gone when this returns.
  void end(int code);
  void start();
  void keep_time();
  void tick();
  void ask(Batch batch, Limit::Permit job);
  void answered(const Span& span, const InferenceResult& result, Duration elapsed);
  void send_error(const Span& span, const Failure& failure, std::optional<Duration> elapsed);
  void send(std::string message);

  Worker& worker_;
  Gateway& gateway_;
  Limit::Permit place_;
  WebSocket* ws_ = nullptr;
  /// The start timeout, then the ticks.
  Timer timer_;
  std::optional<Session> session_;
  /// What waits until the socket has taken all that came before. uWebSockets' own buffer counts bytes, the contract
  /// counts messages, so that buffer never has more than the rest of one.
  std::deque<std::string> outbox_;
  bool is_draining_ = false;
};

}  // namespace stt
