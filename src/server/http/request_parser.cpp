#include "server/http/request_parser.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>

#include "base/check.hpp"
#include "server/http/target.hpp"

namespace kvasir::server {
namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;
using BeastError = boost::system::error_code;

constexpr std::uint64_t kFirstBodyReserve = 64 << 10;   // a large body grows as it comes, not as it is announced

std::string_view view(beast::string_view text) { return {text.data(), text.size()}; }

std::string lower(std::string_view text) {
  std::string lowered(text);
  std::transform(lowered.begin(), lowered.end(), lowered.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return lowered;
}

}  // namespace

class RequestParser::Sink final : public http::basic_parser<true> {
 public:
  explicit Sink(const Limits& limits) : limits_(limits) {
    header_limit(limits.header_bytes);
    body_limit(limits.body_bytes);
    eager(false);   // one part a call, so that the head can be judged before the body
  }

  Event feed(std::string_view bytes, std::size_t& consumed);

  HttpRequest request;
  Failure failure;
  bool http11 = false;
  bool has_body = false;
  bool expects_continue = false;

 private:
  Event fail(int status, std::string message, std::string code);
  Event fail(const BeastError& error);
  // Refuses the head from inside a callback; `failure` holds the answer.
  void refuse(int status, std::string message, std::string code, BeastError& error) {
    fail(status, std::move(message), std::move(code));
    error = http::error::bad_value;
  }
  void judge_framing(BeastError& error);

  void on_request_impl(http::verb, beast::string_view method, beast::string_view target, int version,
                       BeastError& error) override;
  void on_field_impl(http::field, beast::string_view name, beast::string_view value, BeastError& error) override;
  void on_header_impl(BeastError& error) override;
  void on_body_init_impl(const boost::optional<std::uint64_t>& length, BeastError& error) override {
    request.body.reserve(std::min(length.value_or(0), kFirstBodyReserve));
    error = {};
  }
  std::size_t on_body_impl(beast::string_view body, BeastError& error) override {
    request.body.append(body.data(), body.size());
    error = {};
    return body.size();
  }
  void on_chunk_header_impl(std::uint64_t, beast::string_view, BeastError& error) override { error = {}; }
  std::size_t on_chunk_body_impl(std::uint64_t, beast::string_view body, BeastError& error) override {
    return on_body_impl(body, error);
  }
  void on_finish_impl(BeastError& error) override { error = {}; }
  void on_response_impl(int, beast::string_view, int, BeastError&) override {}

  Limits limits_;
  std::uint64_t head_bytes_ = 0;
  bool skipped_blank_line_ = false;
  bool head_seen_ = false;
  bool head_reported_ = false;
  bool refused_ = false;
};

RequestParser::Event RequestParser::Sink::fail(int status, std::string message, std::string code) {
  refused_ = true;
  failure = {.status = status, .error = {.message = std::move(message), .param = std::nullopt, .code = std::move(code)}};
  return Event::failed;
}

RequestParser::Event RequestParser::Sink::fail(const BeastError& error) {
  if (refused_) return Event::failed;
  if (error == http::error::header_limit) {
    return fail(431, fmt::format("The request head is larger than max_header_bytes = {}.", limits_.header_bytes),
                "header_too_large");
  }
  if (error == http::error::body_limit) {
    return fail(413, fmt::format("The request body is larger than max_body_bytes = {}.", limits_.body_bytes),
                "body_too_large");
  }
  return fail(400, fmt::format("The request is not valid HTTP/1.1: {}.", error.message()), "bad_http");
}

RequestParser::Event RequestParser::Sink::feed(std::string_view bytes, std::size_t& consumed) {
  consumed = 0;
  if (!got_some() && !skipped_blank_line_) {   // some clients end a body with one blank line too many
    if (bytes == "\r") return Event::need_more;
    skipped_blank_line_ = bytes.starts_with("\r\n");
    consumed = skipped_blank_line_ ? 2 : 0;
  }
  while (true) {
    if (head_seen_ && !head_reported_) {
      head_reported_ = true;
      return Event::head;
    }
    if (is_done()) return Event::complete;
    if (consumed == bytes.size()) return Event::need_more;
    BeastError error;
    consumed += put(boost::asio::const_buffer(bytes.data() + consumed, bytes.size() - consumed), error);
    if (error == http::error::need_more) {
      // Beast bounds the head; a chunk's extensions and the trailers are ours to bound.
      if (bytes.size() - consumed <= limits_.header_bytes) return Event::need_more;
      error = http::error::header_limit;
    }
    if (error) return fail(error);
  }
}

void RequestParser::Sink::on_request_impl(http::verb, beast::string_view method, beast::string_view target, int version,
                                          BeastError& error) {
  error = {};
  http11 = version == 11;
  request.method.assign(method.data(), method.size());
  request.target.assign(target.data(), target.size());
  head_bytes_ = request.method.size() + request.target.size() + std::string_view("  HTTP/1.1\r\n").size();
  if (request.method == "OPTIONS" && request.target == "*") {
    request.path = "*";
    return;
  }
  Result<Target> parsed = server::parse_target(view(target));
  if (!parsed) return refuse(400, "The request is not valid HTTP/1.1: " + parsed.error().message + ".", "bad_http", error);
  request.path = std::move(parsed->path);
  request.query = std::move(parsed->query);
}

void RequestParser::Sink::on_field_impl(http::field, beast::string_view name, beast::string_view value,
                                        BeastError& error) {
  error = {};
  head_bytes_ += name.size() + value.size() + 4;
  if (head_bytes_ > limits_.header_bytes) {   // Beast's own limit starts anew with each read
    error = http::error::header_limit;
    return;
  }
  if (head_seen_) return;   // a trailer: what was decided by the head stays decided
  if (request.headers.size() == limits_.header_count) {
    return refuse(431, fmt::format("The request has more than max_header_count = {} header fields.", limits_.header_count),
                  "header_too_large", error);
  }
  request.headers.push_back({lower(view(name)), std::string(view(value))});
}

void RequestParser::Sink::judge_framing(BeastError& error) {
  std::size_t hosts = 0, codings = 0;
  for (const HeaderField& field : request.headers) {
    hosts += field.name == "host" ? 1 : 0;
    if (field.name != "transfer-encoding") continue;
    ++codings;
    if (lower(field.value) != "chunked") {
      return refuse(501, fmt::format("Transfer-Encoding '{}' is not supported; 'chunked' is.", field.value),
                    "unsupported_transfer_encoding", error);
    }
  }
  if (hosts > 1 || (hosts == 0 && http11)) {
    return refuse(400, fmt::format("An HTTP/1.1 request needs exactly one Host field; this one has {}.", hosts),
                  "bad_http", error);
  }
  if (codings > 0 && !http11) {
    return refuse(400, "An HTTP/1.0 request cannot have a Transfer-Encoding.", "bad_http", error);
  }
}

void RequestParser::Sink::on_header_impl(BeastError& error) {
  error = {};
  judge_framing(error);
  if (error) return;
  has_body = chunked() || content_length().value_or(0) > 0;
  const std::string* coding = find_header(request.headers, "content-encoding");
  if (has_body && coding != nullptr && !coding->empty() && lower(*coding) != "identity") {
    return refuse(415, fmt::format("Content-Encoding '{}' is not supported; send the body as it is.", *coding),
                  "unsupported_content_encoding", error);
  }
  if (const std::string* expect = find_header(request.headers, "expect"); expect != nullptr && http11) {
    if (lower(*expect) != "100-continue") {
      return refuse(417, fmt::format("Expect '{}' is not supported; '100-continue' is.", *expect), "unsupported_expectation",
                    error);
    }
    expects_continue = has_body;
  }
  head_seen_ = true;
}

RequestParser::RequestParser(const Limits& limits) : sink_(std::make_unique<Sink>(limits)) {}
RequestParser::~RequestParser() = default;
RequestParser::RequestParser(RequestParser&&) noexcept = default;
RequestParser& RequestParser::operator=(RequestParser&&) noexcept = default;

RequestParser::Event RequestParser::feed(std::string_view bytes, std::size_t& consumed) {
  return sink_->feed(bytes, consumed);
}
HttpRequest& RequestParser::request() { return sink_->request; }
const RequestParser::Failure& RequestParser::failure() const { return sink_->failure; }
bool RequestParser::started() const { return sink_->got_some(); }
bool RequestParser::http11() const { return sink_->http11; }
bool RequestParser::keep_alive() const { return sink_->keep_alive(); }
bool RequestParser::has_body() const { return sink_->has_body; }
bool RequestParser::expects_continue() const { return sink_->expects_continue; }

}  // namespace kvasir::server
