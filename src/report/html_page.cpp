#include "report/html_page.hpp"

#include <fmt/format.h>

#include "report/svg_plot.hpp"

namespace kvasir::report {
namespace {

constexpr std::string_view kStyle =
    ":root{color-scheme:light dark}"
    "body{max-width:60rem;margin:2rem auto;padding:0 1rem;font:15px/1.5 "
    "system-ui,sans-serif;background:Canvas;color:CanvasText}"
    "h1{font-size:1.4rem}h2{font-size:1.1rem;margin-top:2rem}"
    "pre{overflow-x:auto;padding:.8rem;border:1px solid color-mix(in srgb,CanvasText "
    "20%,Canvas);border-radius:6px;font-size:13px}"
    "svg{width:100%;height:auto}";

}  // namespace

std::string html_page(std::string_view title, const std::vector<HtmlSection>& sections) {
  std::string page = fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, "
      "initial-scale=1\">\n<title>{0}</title>\n<style>{1}</style>\n</head>\n<body>\n<h1>{0}</h1>\n",
      escape_markup(title), kStyle);
  for (const HtmlSection& section : sections) {
    if (!section.heading.empty()) page += fmt::format("<h2>{}</h2>\n", escape_markup(section.heading));
    if (!section.preformatted.empty()) page += fmt::format("<pre>{}</pre>\n", escape_markup(section.preformatted));
    page += section.markup;
  }
  return page + "</body>\n</html>\n";
}

}  // namespace kvasir::report
