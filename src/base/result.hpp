// Result<T>: a value or an Error. For operating errors (memory, files, limits) and user errors (bad input); programmer
// errors are checks (base/check.hpp). Nothing in the library throws across a layer.
// Thread rule: a value type; no sharing.
#pragma once

#include <string>
#include <utility>
#include <variant>

#include "base/check.hpp"

namespace kvasir {

// What kind of failure. The command line maps each to an exit code (cli/exit_code.hpp), the server to a status.
enum class ErrorCode {
  usage,         // unknown option, missing argument
  bad_input,     // a file, prompt or value that is malformed or out of range
  unsupported,   // well-formed but not offered: the message names what is
  does_not_fit,  // needs more memory or context than there is: the message has both numbers
  exhausted,     // no free blocks right now; nothing was changed
  io,            // the operating system refused
  cancelled,
  internal,      // a foreign library failed in a way that is neither the user's fault nor the system's
};

// The message names the key, the value and what would be valid; it is shown to people as it is.
struct Error {
  ErrorCode code = ErrorCode::internal;
  std::string message;
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}            // NOLINT(google-explicit-constructor)
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}        // NOLINT(google-explicit-constructor)

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  // REQUIRES: ok().
  T& value() & { require_ok(); return std::get<0>(state_); }
  const T& value() const& { require_ok(); return std::get<0>(state_); }
  T&& value() && { require_ok(); return std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  // REQUIRES: !ok().
  const Error& error() const& {
    KV_CHECK(!ok(), "error() of a Result that holds a value");
    return std::get<1>(state_);
  }
  Error&& error() && {
    KV_CHECK(!ok(), "error() of a Result that holds a value");
    return std::get<1>(std::move(state_));
  }

 private:
  void require_ok() const { KV_CHECK(ok(), std::get_if<1>(&state_) ? std::get_if<1>(&state_)->message : std::string()); }

  std::variant<T, Error> state_;
};

// For operations with nothing to return.
struct Unit {};
using Status = Result<Unit>;
inline Status ok_status() { return Unit{}; }

}  // namespace kvasir

#define KV_CONCAT_INNER(a, b) a##b
#define KV_CONCAT(a, b) KV_CONCAT_INNER(a, b)

// KV_TRY(expr): returns the error of `expr` from the enclosing function, if it has one.
#define KV_TRY(expr)                                                       \
  do {                                                                     \
    if (auto kv_status = (expr); !kv_status.ok()) [[unlikely]]             \
      return std::move(kv_status).error();                                 \
  } while (false)

// KV_ASSIGN(auto x, expr): x = value of expr, or returns its error.
#define KV_ASSIGN(declaration, expr)                                       \
  auto KV_CONCAT(kv_result_, __LINE__) = (expr);                           \
  if (!KV_CONCAT(kv_result_, __LINE__).ok()) [[unlikely]]                  \
    return std::move(KV_CONCAT(kv_result_, __LINE__)).error();             \
  declaration = std::move(KV_CONCAT(kv_result_, __LINE__)).value()
