// ApiResult<T>: a value, or the ApiError to answer with. The shape of base/result.hpp, so that KV_TRY and KV_ASSIGN
// work. Thread rule: a value type; no sharing.
#pragma once

#include <utility>
#include <variant>

#include "base/check.hpp"
#include "base/result.hpp"
#include "server/api/api_error.hpp"

namespace kvasir::server::api {

template <class T>
class [[nodiscard]] ApiResult {
 public:
  ApiResult(T value) : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT(google-explicit-constructor)
  ApiResult(ApiError error)
      : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  // REQUIRES: ok().
  T& value() & {
    require_ok();
    return std::get<0>(state_);
  }
  const T& value() const& {
    require_ok();
    return std::get<0>(state_);
  }
  T&& value() && {
    require_ok();
    return std::get<0>(std::move(state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  // REQUIRES: !ok().
  const ApiError& error() const& {
    require_error();
    return std::get<1>(state_);
  }
  ApiError&& error() && {
    require_error();
    return std::get<1>(std::move(state_));
  }

 private:
  void require_ok() const {
    KV_CHECK(ok(), std::get_if<1>(&state_) ? std::get_if<1>(&state_)->message : std::string());
  }
  void require_error() const { KV_CHECK(!ok(), "error() of an ApiResult that holds a value"); }

  std::variant<T, ApiError> state_;
};

using ApiStatus = ApiResult<Unit>;
inline ApiStatus api_ok() { return Unit{}; }

}  // namespace kvasir::server::api
