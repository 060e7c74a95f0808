// Pieces that every picture is made of: a frame, a word, a line, a rectangle. Internal to report.
// Pure functions, any thread. Lengths are user units of the SVG, about a pixel each on a page.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace kvasir::report::svg {

inline constexpr double kWidth = 860, kLeft = 56, kRight = 16, kTop = 34;
inline constexpr std::array<const char*, 8> kColours = {"#2b7bba", "#d9662c", "#3a9a5b", "#8a5bb5", "#c9a227", "#4fa8a8", "#b5527f", "#7a7a7a"};

// Opens a picture kWidth wide with its title on it; whoever opens it ends it with "</svg>\n".
std::string open(std::string_view title, double height);
// anchor: "start", "middle" or "end".
std::string text(double x, double y, const char* anchor, std::string_view words);
// A faint line of a grid.
std::string line(double x1, double y1, double x2, double y2);
// label: shown when the pointer rests on it; empty: none.
std::string box(double x, double y, double width, double height, const char* colour, std::string_view label);

}  // namespace kvasir::report::svg
