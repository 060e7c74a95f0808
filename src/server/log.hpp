// The server's log: one line an event, JSON or text, with the request's id where there is one. Never prompt text, keys
// or query strings: callers pass facts, not payloads.
//   2026-11-30T03:16:03.042Z info request id=req_1f status=200 seconds=0.012
//   {"time":"2026-11-30T03:16:03.042Z","level":"info","event":"request","id":"req_1f","status":200,"seconds":0.012}
// Thread rule: any thread; a line is written whole.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <mutex>
#include <string>
#include <string_view>
#include <variant>

#include "server/http/http_config.hpp"

namespace kvasir::server {

enum class LogLevel { error, warning, info, debug };
enum class LogFormat { text, json };

struct LogField {
  std::string_view key;   // [a-z_]+
  std::variant<std::string_view, std::int64_t, double, bool> value;
};

class Logger {
 public:
  using Sink = std::function<void(std::string_view line)>;   // the line ends in a newline; called under a lock

  // No sink: stderr.
  explicit Logger(LogFormat format, LogLevel level = LogLevel::info, Sink sink = {});

  bool enabled(LogLevel level) const { return level <= level_; }
  // `event` is a fixed word of the source, not text from outside. Control characters and invalid UTF-8 in values are
  // escaped, so that no value can forge a line.
  void log(LogLevel level, std::string_view event, std::initializer_list<LogField> fields);

  // The line of an answered request; suits HttpConfig::on_access.
  void access(const AccessRecord& record);

 private:
  const LogFormat format_;
  const LogLevel level_;
  const Sink sink_;
  std::mutex mutex_;
};

}  // namespace kvasir::server
