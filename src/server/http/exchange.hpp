// One request and its answer: the meeting point of the thread that produces the answer and the I/O thread that sends it.
// Holds the answer's bytes until the I/O thread takes them; everything taken at once leaves in one write.
//
//   waiting --send--------------------> complete
//      \----begin_stream--> streaming --end--^
//   any of them --abort, a full queue, a lost peer--> cut
//
// Thread rule: the producer's half from any thread; the I/O thread's half from the connection's thread alone.
// Invariants: the disconnect callback runs at most once, outside the lock, and never once the answer is complete. A
// producer wakes the I/O thread at most once between two take() calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "server/http/responder.hpp"
#include "server/http/response_head.hpp"

namespace kvasir::server {

class Exchange {
 public:
  struct Traits {
    bool http11 = true;
    bool keep_alive = true;       // what the client wants
    bool head_only = false;       // HEAD: no body goes out
    std::string id;
    std::uint64_t max_queued_bytes = 0;
  };
  using Wake = std::function<void()>;   // any thread: the connection should look at this exchange

  Exchange(Traits traits, Wake wake) : traits_(std::move(traits)), wake_(std::move(wake)) {}
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  // The responder the handler gets; when its last owner lets go, the exchange is abandoned.
  static ResponderPtr responder(std::shared_ptr<Exchange> exchange);

  // Producer's half: see Responder.
  void add_header(std::string name, std::string value);
  bool send(int status, const HeaderFields& headers, std::string_view content_type, std::string_view body);
  bool begin_stream(int status, const HeaderFields& headers, std::string_view content_type);
  bool write(std::string_view chunk);
  bool end();
  void abort();
  void abandon();
  void on_disconnect(Responder::DisconnectCallback callback);
  std::size_t queued_bytes() const;
  bool gone() const;

  // I/O thread's half.
  struct Taken {
    bool complete = false;     // nothing will follow what was taken
    bool keep_alive = false;   // the head said so
    bool cut = false;          // close the connection after what was taken: the answer is not whole
  };
  // Appends what is queued to `out`.
  Taken take(std::string& out);
  // The kernel took this many of the bytes that take() gave.
  void sent(std::size_t bytes);
  // The peer is lost: drops what is queued and calls the callback unless the answer was complete.
  void lose(DisconnectReason reason);
  // Queues ": ping" if this is an event stream with nothing queued.
  void ping();
  // No answer after this one: the head, if it is not queued yet, will say "Connection: close".
  void close_after();
  bool complete() const;
  // Why to close the connection at once: the producer outran the reader.
  std::optional<DisconnectReason> lost() const;
  int status() const;   // of the head; 0 before it is queued

 private:
  enum class Phase { waiting, streaming, complete, cut };

  // Runs `change` under the lock; it returns whether the I/O thread has to look.
  template <class Change>
  void change_and_wake(Change&& change);
  void queue_head(int status, const HeaderFields& headers, std::string_view content_type, BodyFraming framing,
                  std::size_t length);
  void queue_piece(std::string_view chunk);
  void overflow();

  mutable std::mutex mutex_;
  Traits traits_;
  const Wake wake_;
  Phase phase_ = Phase::waiting;
  BodyFraming framing_ = BodyFraming::none;
  bool event_stream_ = false;
  bool woken_ = false;             // a wake is on its way to take()
  int status_ = 0;
  HeaderFields sticky_;
  std::string queued_;             // not taken yet
  std::size_t taken_bytes_ = 0;    // taken, not sent yet
  std::optional<DisconnectReason> lost_;
  Responder::DisconnectCallback callback_;
};

}  // namespace kvasir::server
