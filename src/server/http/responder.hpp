// The answer to one request, given from whatever thread has it: at once, or piece by piece as tokens come.
//
//   send                       one whole answer
//   begin_stream write* end    an answer of unknown length (chunked; an event stream gets ": ping" comments while idle)
//
// Thread rule: every call from any thread, each atomic; calls of one answer must be ordered by the caller. Callbacks run
// on an I/O thread, or inside on_disconnect() itself where the peer has gone already: they must not block.
// Invariants: exactly one answer. A second send, or a write after end, is dropped and returns false. The last owner
// letting go of a responder without an answer gives the client a 500; in the middle of a stream, the connection is cut.
// Nothing here waits for the peer: bytes queue, and queued_bytes() says how many.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "server/http/message.hpp"

namespace kvasir::server {

enum class DisconnectReason {
  peer_closed,   // the peer closed or reset the connection, or closed its sending half before the answer was complete
  slow_reader,   // the peer left more than HttpConfig::max_queued_bytes of a stream unread
  stalled,       // the peer read nothing for HttpConfig::write_stall_ms
  flooded,       // the peer sent more than HttpConfig::max_pipelined_bytes before this answer was complete
  shut_down,     // the server ended before the answer was complete
};
std::string_view to_string(DisconnectReason reason);

class Responder {
 public:
  using DisconnectCallback = std::function<void(DisconnectReason)>;

  virtual ~Responder() = default;

  // Joins the head of the answer, whoever sends it. No effect once the head is queued.
  virtual void add_header(std::string name, std::string value) = 0;

  // A whole answer. False once the peer is gone or an answer was begun. Control characters in field values become
  // spaces: no value can start a field of its own.
  virtual bool send(int status, const HeaderFields& headers, std::string_view content_type, std::string_view body) = 0;
  bool send(const HttpResponse& response) {
    return send(response.status, response.headers, response.content_type, response.body);
  }

  // The head of a stream. False as above.
  virtual bool begin_stream(int status, const HeaderFields& headers, std::string_view content_type) = 0;
  // Queues bytes; pieces that are queued before the I/O thread gets to them leave in one write. False once the peer is
  // gone: stop producing. A piece of an event stream ends where an event ends, for a comment may follow it.
  virtual bool write(std::string_view chunk) = 0;
  virtual bool end() = 0;
  // Cuts the connection after what was written, so that the client sees that the answer is not whole.
  virtual void abort() = 0;

  // Calls `callback` at most once, when the peer is lost before the answer was complete: also while the request is
  // queued and nothing was written. One callback: a second registration replaces the first. Never called after send()
  // or end().
  virtual void on_disconnect(DisconnectCallback callback) = 0;

  // Bytes of the answer that the kernel has not taken yet.
  virtual std::size_t queued_bytes() const = 0;
  virtual bool gone() const = 0;
};

using ResponderPtr = std::shared_ptr<Responder>;

// What the server calls. Lives longer than the server.
// Thread rule: both calls come on I/O threads, at once from several if there are several: they must not block.
class HttpHandler {
 public:
  virtual ~HttpHandler() = default;

  // Looks at a request whose head is there and whose body is not read yet. An answer here refuses it without reading the
  // body, so that who may not use the server cannot fill it either.
  virtual std::optional<HttpResponse> screen(const HttpRequest& head) {
    static_cast<void>(head);
    return std::nullopt;
  }

  // Answers now or later, here or on another thread. An exception becomes a 500.
  virtual void handle(HttpRequest request, ResponderPtr responder) = 0;
};

}  // namespace kvasir::server
