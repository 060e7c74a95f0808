#include "server/log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <utility>

#include "platform/wall_clock.hpp"
#include "report/json.hpp"

namespace kvasir::server {
namespace {

std::string_view to_string(LogLevel level) {
  switch (level) {
    case LogLevel::error: return "error";
    case LogLevel::warning: return "warning";
    case LogLevel::info: return "info";
    case LogLevel::debug: return "debug";
  }
  return "unknown";
}

report::Json to_json(const LogField& field) {
  return std::visit([](const auto& value) { return report::Json(value); }, field.value);
}

// A plain word stays as it is; anything else becomes a JSON string, whose escapes keep the line one line.
void append_text(std::string& line, std::string_view value) {
  const bool plain = !value.empty() && std::all_of(value.begin(), value.end(), [](char c) {
    return c > 32 && c < 127 && c != '"' && c != '\\' && c != '=';
  });
  line += plain ? std::string(value) : report::to_json_line(report::Json(value));
}

std::string text_line(const std::string& time, LogLevel level, std::string_view event,
                      std::initializer_list<LogField> fields) {
  std::string line = fmt::format("{} {} {}", time, to_string(level), event);
  for (const LogField& field : fields) {
    line += ' ';
    line += field.key;
    line += '=';
    if (const auto* text = std::get_if<std::string_view>(&field.value)) append_text(line, *text);
    else line += report::to_json_line(to_json(field));
  }
  return line;
}

std::string json_line(const std::string& time, LogLevel level, std::string_view event,
                      std::initializer_list<LogField> fields) {
  report::Json line = {{"time", time}, {"level", to_string(level)}, {"event", event}};
  for (const LogField& field : fields) line[std::string(field.key)] = to_json(field);
  return report::to_json_line(line);
}

}  // namespace

Logger::Logger(LogFormat format, LogLevel level, Sink sink)
    : format_(format), level_(level), sink_(sink ? std::move(sink) : [](std::string_view line) {
        std::fwrite(line.data(), 1, line.size(), stderr);
      }) {}

void Logger::log(LogLevel level, std::string_view event, std::initializer_list<LogField> fields) {
  if (!enabled(level)) return;
  const std::string time = platform::utc_timestamp(platform::unix_ms());
  std::string line = format_ == LogFormat::json ? json_line(time, level, event, fields) : text_line(time, level, event, fields);
  line += '\n';
  const std::lock_guard lock(mutex_);
  sink_(line);
}

void Logger::access(const AccessRecord& record) {
  log(record.lost || record.status >= 500 ? LogLevel::warning : LogLevel::info, "request",
      {{"id", std::string_view(record.id)},
       {"method", std::string_view(record.method)},
       {"path", std::string_view(record.path)},
       {"peer", std::string_view(record.peer)},
       {"status", static_cast<std::int64_t>(record.status)},
       {"bytes", static_cast<std::int64_t>(record.sent_bytes)},
       {"seconds", record.seconds},
       {"lost", record.lost ? to_string(*record.lost) : std::string_view("no")}});
}

}  // namespace kvasir::server
