#include "report/table.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.hpp"

namespace kvasir::report {
namespace {

bool continues_code_point(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

std::string pad(const std::string& cell, std::size_t width, Align align) {
  const std::string space(width - std::min(width, display_width(cell)), ' ');
  return align == Align::left ? cell + space : space + cell;
}

}  // namespace

std::size_t display_width(std::string_view text) {
  return text.size() - static_cast<std::size_t>(std::count_if(text.begin(), text.end(), continues_code_point));
}

std::string printable(std::string_view text) {
  std::string shown;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n') shown += "\\n";
    else if (c == '\t') shown += "\\t";
    else if (c == '\r') shown += "\\r";
    else if (byte < 0x20 || byte == 0x7f) shown += fmt::format("\\x{:02x}", byte);
    else shown += c;
  }
  return shown;
}

std::string shorten(std::string_view text, std::size_t width) {
  KV_CHECK(width >= 3, "a shortened text has room for its dots");
  if (display_width(text) <= width) return std::string(text);
  std::size_t end = 0;
  for (std::size_t points = 0; end < text.size(); ++end) {
    if (!continues_code_point(text[end]) && points++ == width - 3) break;
  }
  return std::string(text.substr(0, end)) + "...";
}

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {
  KV_CHECK(!columns_.empty(), "a table has at least one column");
}

void Table::add_row(std::vector<std::string> cells) {
  KV_CHECK(cells.size() == columns_.size(), "a row has one cell a column");
  for (std::string& cell : cells) cell = printable(cell);
  rows_.push_back(std::move(cells));
}

void Table::add_rule() { rows_.emplace_back(); }

std::string Table::render() const {
  std::vector<std::size_t> widths;
  for (const Column& column : columns_) widths.push_back(display_width(column.title));
  for (const auto& row : rows_) {
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], display_width(row[c]));
  }
  std::string text;
  const auto add_line = [&](const std::vector<std::string>& cells) {
    std::string line;
    for (std::size_t c = 0; c < cells.size(); ++c) {
      if (c != 0) line += "  ";
      line += pad(cells[c], widths[c], columns_[c].align);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  };
  std::vector<std::string> titles, rule;
  bool titled = false;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    titled = titled || !columns_[c].title.empty();
    titles.push_back(columns_[c].title);
    rule.emplace_back(widths[c], '-');
  }
  if (titled) {
    add_line(titles);
    add_line(rule);
  }
  for (const auto& row : rows_) add_line(row.empty() ? rule : row);
  return text;
}

}  // namespace kvasir::report
