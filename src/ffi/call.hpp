// Shared by src/ffi/*.cpp: slices in, errors out.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "base/result.hpp"
#include "ffi/abi.hpp"

namespace kvasir::ffi {

inline KvSlice slice(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

// Takes over an error text; `code` unless the library panicked, which is nobody's input's fault by contract.
inline Status status(char* error, ErrorCode code) {
  if (error == nullptr) return ok_status();
  std::string message(error);
  kv_error_free(error);
  if (message.starts_with("panic: ")) code = ErrorCode::internal;
  return Error{code, std::move(message)};
}

}  // namespace kvasir::ffi
