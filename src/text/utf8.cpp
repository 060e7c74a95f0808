#include "text/utf8.hpp"

#include "base/check.hpp"

namespace kvasir::text {

namespace {

// Bytes that may follow a lead byte: how many in all, and the range of the first of them (table 3-7).
struct Lead {
  std::size_t length = 0;  // of the character; 0 = no lead byte
  unsigned char low = 0x80, high = 0xBF;
};

Lead lead_of(unsigned char byte) {
  if (byte < 0x80) return {1};
  if (byte < 0xC2) return {};
  if (byte < 0xE0) return {2};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte < 0xF0) return {3};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte < 0xF4) return {4};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {};
}

}  // namespace

Utf8Step utf8_step(std::string_view text, std::size_t at) {
  KV_CHECK(at < text.size(), "a position within the text");
  const Lead lead = lead_of(static_cast<unsigned char>(text[at]));
  if (lead.length == 0) return {Utf8Kind::ill_formed, 1};
  for (std::size_t i = 1; i < lead.length; ++i) {
    if (at + i == text.size()) return {Utf8Kind::cut_off, i};
    const auto byte = static_cast<unsigned char>(text[at + i]);
    const unsigned char low = i == 1 ? lead.low : 0x80, high = i == 1 ? lead.high : 0xBF;
    if (byte < low || byte > high) return {Utf8Kind::ill_formed, i};
  }
  return {Utf8Kind::character, lead.length};
}

std::optional<std::size_t> first_invalid_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Step step = utf8_step(text, at);
    if (step.kind != Utf8Kind::character) return at;
    at += step.length;
  }
  return std::nullopt;
}

char32_t utf8_code_point(std::string_view text, std::size_t at) {
  const Utf8Step step = utf8_step(text, at);
  KV_CHECK(step.kind == Utf8Kind::character, "a character at the position");
  const auto lead = static_cast<unsigned char>(text[at]);
  if (step.length == 1) return lead;
  char32_t code = lead & (0x7Fu >> step.length);
  for (std::size_t i = 1; i < step.length; ++i) code = code << 6 | (static_cast<unsigned char>(text[at + i]) & 0x3Fu);
  return code;
}

void append_utf8(std::string& out, char32_t code_point) {
  const auto tail = [&](int shift) { out.push_back(static_cast<char>(0x80u | (code_point >> shift & 0x3Fu))); };
  if (code_point < 0x80) {
    out.push_back(static_cast<char>(code_point));
  } else if (code_point < 0x800) {
    out.push_back(static_cast<char>(0xC0u | code_point >> 6));
    tail(0);
  } else if (code_point < 0x10000) {
    out.push_back(static_cast<char>(0xE0u | code_point >> 12));
    tail(6);
    tail(0);
  } else {
    out.push_back(static_cast<char>(0xF0u | code_point >> 18));
    tail(12);
    tail(6);
    tail(0);
  }
}

bool is_white_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

}  // namespace kvasir::text
