#include "report/svg_parts.hpp"

#include <fmt/format.h>

#include "report/svg_plot.hpp"

namespace kvasir::report {

std::string escape_markup(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        if (static_cast<unsigned char>(c) >= 0x20 || c == '\n' || c == '\t') out += c;
    }
  }
  return out;
}

namespace svg {

std::string open(std::string_view title, double height) {
  return fmt::format(
      "<svg viewBox=\"0 0 {0:g} {1:g}\" role=\"img\" xmlns=\"http://www.w3.org/2000/svg\" font-size=\"12\" "
      "font-family=\"system-ui, sans-serif\">"
      "<title>{2}</title><text x=\"{3:g}\" y=\"18\" font-size=\"14\" font-weight=\"600\" "
      "fill=\"currentColor\">{2}</text>\n",
      kWidth, height, escape_markup(title), kLeft);
}

std::string text(double x, double y, const char* anchor, std::string_view words) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" fill=\"currentColor\">{}</text>\n", x, y,
                     anchor, escape_markup(words));
}

std::string line(double x1, double y1, double x2, double y2) {
  return fmt::format(
      "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"currentColor\" "
      "stroke-opacity=\"0.18\"/>\n",
      x1, y1, x2, y2);
}

std::string box(double x, double y, double width, double height, const char* colour, std::string_view label) {
  const std::string title = label.empty() ? "" : fmt::format("<title>{}</title>", escape_markup(label));
  return fmt::format("<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" fill=\"{}\">{}</rect>\n", x, y, width,
                     height, colour, title);
}

}  // namespace svg
}  // namespace kvasir::report
