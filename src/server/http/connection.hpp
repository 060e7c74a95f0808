// One connection: reads requests, hands them over one at a time, sends their answers in order.
//
// Internal to the HTTP server: includes Asio.
//
//   idle -> head -> body -> answering -> idle ...            a request's course
//                  any -> lingering -> closed                after an answer that says "close": what the peer still
//                                                            sends is read and dropped, or a reset could overtake the answer
//
// Works by readiness alone (wait, then read or write without blocking): an idle connection has no buffer.
//
// Thread rule: its loop's thread.
// Invariants: registered with the loop until closed. At most one exchange at a time. Reading never stops before the end:
// that is how a hang-up is seen while the answer is still being computed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "server/http/exchange.hpp"
#include "server/http/loop.hpp"
#include "server/http/request_parser.hpp"

namespace kvasir::server {

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(Loop& loop, Socket socket, bool unix_socket);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void start();
  // Sends what is queued, then goes on to the next request; until it would have to wait.
  void drive();
  void check_deadlines();
  // Closes if nothing is being read or answered; else the answer in progress is the last.
  void begin_drain();
  // Closes now.
  void lose(DisconnectReason reason);

  std::size_t slot = 0;   // the loop's index of it

 private:
  enum class Phase { idle, head, body, answering, lingering, closed };

  void arm_read();
  void arm_write();
  void on_readable();
  void on_bytes(std::string_view bytes);
  void on_end_of_input();

  bool parse_next();
  void on_head();
  void dispatch();
  void open_exchange(bool keep_alive);
  void answer(const HttpResponse& response, bool keep_alive);
  void refuse(int status, const HttpError& error, HeaderFields headers = {});
  bool within_buffer_budget();

  bool flush();
  bool finish_exchange();
  void check_output(std::uint64_t now);
  void record(std::optional<DisconnectReason> lost);
  void become_idle();
  void linger();
  void close();

  Loop& loop_;
  ServerContext& server_;
  Socket socket_;
  const bool unix_socket_;
  std::string peer_;

  Phase phase_ = Phase::idle;
  std::uint64_t deadline_ms_ = 0;   // of the phase; 0: none
  bool driving_ = false;
  bool read_armed_ = false;
  bool write_armed_ = false;
  bool input_ended_ = false;        // the peer closed its sending half
  bool close_after_flush_ = false;

  std::string pending_;             // read, not parsed
  std::unique_ptr<RequestParser> parser_;   // of the request that is being read
  std::uint64_t charged_bytes_ = 0;         // to ServerContext::buffered_bytes
  std::uint64_t lingered_bytes_ = 0;

  std::shared_ptr<Exchange> exchange_;
  Exchange::Taken taken_;
  std::string method_, path_, id_;   // of the exchange's request, for the record
  std::uint64_t begun_ns_ = 0;
  std::uint64_t exchange_bytes_ = 0;

  std::string out_;                 // taken, being sent
  std::size_t out_sent_ = 0;
  std::uint64_t last_output_ms_ = 0;
  std::uint64_t stalled_since_ms_ = 0;   // 0: the socket takes what it is given
  std::uint64_t window_bytes_ = 0;       // sent since then
};

}  // namespace kvasir::server
