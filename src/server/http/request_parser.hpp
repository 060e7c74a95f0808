// Bytes to one HTTP/1.x request, without a socket. Strict where leniency lets two readers of one stream disagree about
// where a request ends: transfer codings other than exactly "chunked", both framings at once, repeated Host.
//
// Thread rule: one owner.
// Invariants: holds at most header_bytes of head (all fields together) and body_bytes of body; trailers are dropped.
// Source: RFC 9112, by Boost.Beast's basic_parser.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "server/http/message.hpp"

namespace kvasir::server {

class RequestParser {
 public:
  struct Limits {
    std::uint32_t header_bytes;
    std::uint32_t header_count;
    std::uint64_t body_bytes;
  };

  enum class Event {
    need_more,   // present the bytes that were not consumed again, with more after them
    head,        // the head is complete; once a request, before any byte of its body is consumed
    complete,
    failed,      // see failure(); no further feed
  };

  struct Failure {
    int status = 400;   // 400, 413, 431, 501
    HttpError error;
  };

  explicit RequestParser(const Limits& limits);
  ~RequestParser();
  RequestParser(RequestParser&&) noexcept;
  RequestParser& operator=(RequestParser&&) noexcept;

  // Parses up to the next event and sets `consumed`, at most bytes.size(). REQUIRES: neither complete nor failed before.
  Event feed(std::string_view bytes, std::size_t& consumed);

  // Complete but for peer, id and arrival after `head`; the body after `complete`.
  HttpRequest& request();
  const Failure& failure() const;

  bool started() const;            // a byte of the request was seen
  // After `head`:
  bool http11() const;
  bool keep_alive() const;
  bool has_body() const;           // announces one byte or more
  bool expects_continue() const;

 private:
  class Sink;
  std::unique_ptr<Sink> sink_;
};

}  // namespace kvasir::server
