#include "text/content_marks.hpp"

#include <algorithm>
#include <set>

#include "text/utf8.hpp"

namespace kvasir::text {

namespace {

// The end of the first character in [begin, end) that is not white space.
std::optional<std::size_t> first_visible_end(std::string_view text, std::size_t begin, std::size_t end) {
  while (begin < end) {
    const Utf8Step step = utf8_step(text, begin);
    if (step.kind != Utf8Kind::character || !is_white_space(utf8_code_point(text, begin))) return begin + step.length;
    begin += step.length;
  }
  return std::nullopt;
}

// Ranges of `content` that are all of, the end of, the beginning of, or inside a text of `guarded`.
void find_hazards(std::string_view content, std::string_view guarded, std::vector<TextRange>& out) {
  for (std::size_t at = content.find(guarded); at != std::string_view::npos; at = content.find(guarded, at + 1)) {
    out.push_back({at, at + guarded.size()});
  }
  const std::size_t most = std::min(content.size(), guarded.size() - 1);
  for (std::size_t length = 1; length <= most; ++length) {
    if (content.ends_with(guarded.substr(0, length))) out.push_back({content.size() - length, content.size()});
    if (content.starts_with(guarded.substr(guarded.size() - length))) out.push_back({0, length});
  }
  if (content.size() < guarded.size() && guarded.find(content) != std::string_view::npos)
    out.push_back({0, content.size()});
}

}  // namespace

std::optional<std::string> unused_marker(std::span<const std::string_view> texts) {
  for (char32_t code = 0x10FFFD; code >= 0x100000; --code) {
    std::string marker;
    append_utf8(marker, code);
    const auto has = [&](std::string_view text) { return text.find(marker) != std::string_view::npos; };
    if (std::none_of(texts.begin(), texts.end(), has)) return marker;
  }
  return std::nullopt;
}

std::string mark_all(std::string_view content, std::string_view marker) {
  std::string out;
  out.reserve(content.size() * (1 + marker.size()));
  for (std::size_t at = 0; at < content.size();) {
    const std::size_t length = utf8_step(content, at).length;
    out.append(content.substr(at, length));
    if (!is_white_space(utf8_code_point(content, at))) out.append(marker);
    at += length;
  }
  return out;
}

std::string mark_hazards(std::string_view content, std::span<const std::string_view> guarded, std::string_view marker) {
  std::vector<TextRange> hazards;
  for (const std::string_view text : guarded) {
    if (!text.empty()) find_hazards(content, text, hazards);
  }
  std::set<std::size_t> places;  // ends of the characters to mark
  for (const TextRange& hazard : hazards) {
    if (const auto end = first_visible_end(content, hazard.begin, hazard.end)) places.insert(*end);
  }
  std::string out;
  std::size_t at = 0;
  for (const std::size_t place : places) {
    out.append(content.substr(at, place - at)).append(marker);
    at = place;
  }
  out.append(content.substr(at));
  return out;
}

Unmarked unmark(std::string_view rendered, std::string_view marker) {
  Unmarked out;
  for (std::size_t at = 0; at < rendered.size();) {
    const std::size_t found = std::min(rendered.find(marker, at), rendered.size());
    out.text.append(rendered.substr(at, found - at));
    at = std::min(found + marker.size(), rendered.size());
    if (found == rendered.size() || out.text.empty()) continue;
    std::size_t begin = out.text.size() - 1;
    while (begin > 0 && (static_cast<unsigned char>(out.text[begin]) & 0xC0u) == 0x80u) --begin;
    if (!out.literal.empty() && out.literal.back().end >= begin) {
      out.literal.back().end = out.text.size();
    } else {
      out.literal.push_back({begin, out.text.size()});
    }
  }
  return out;
}

}  // namespace kvasir::text
