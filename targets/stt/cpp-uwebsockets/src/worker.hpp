// One event loop on one thread: an app of uWebSockets, and what its sessions share.
#pragma once

#include <random>
#include <unordered_set>

#include "client.hpp"
#include "gateway.hpp"
#include "inference.hpp"

namespace stt {

/// Made, run and ended on the thread whose loop it uses.
class Worker {
 public:
  explicit Worker(Gateway& shared);

  /// False if the port is not to be had.
  bool listen();
  /// Returns after `stop`.
  void run() { app_.run(); }

  // From any thread.
  /// Closes each session after the answer to what is in flight.
  void drain();
  /// Closes each session at once.
  void end_sessions();
  /// Closes all that keeps the loop.
  void stop();

  // For what runs on the loop.
  Gateway& gateway;
  std::mt19937 random{std::random_device{}()};
  std::unordered_set<Client*> clients;
  Timers timers;
  InferenceClient inference;

 private:
  void upgrade(uWS::HttpResponse<false>* response, uWS::HttpRequest* request, us_socket_context_t* context);
  void for_each_client(void (*act)(Client&));

  uWS::Loop* loop_ = uWS::Loop::get();
  // Its end ends no session: that is what `stop` is for.
  uWS::App app_;
};

}  // namespace stt
