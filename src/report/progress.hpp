// A progress line that redraws itself in place. The caller says whether anyone is watching (a terminal) and what time it
// is, so the text is a pure function of its arguments.
// Thread rule: one thread at a time.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>

namespace kvasir::report {

// "label  [#######.............]  35%  12/34 windows  1.23 s, 2.28 s left"
// total 0 means unknown: no bar, no share. seconds: since the work began.
std::string progress_text(std::string_view label, std::uint64_t done, std::uint64_t total, std::string_view unit, double seconds);

class ProgressLine {
 public:
  // Nothing is ever written unless `visible`. `out` must outlive the object.
  ProgressLine(std::ostream& out, bool visible, std::string label, std::string unit);
  ~ProgressLine();   // clears the line
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Redraws at most ten times a second of `seconds`, and always when done == total.
  void update(std::uint64_t done, std::uint64_t total, double seconds);
  // Removes the line, so that other output can be written.
  void clear();

 private:
  std::ostream& out_;
  bool visible_;
  std::string label_, unit_;
  double drawn_at_ = -1;
  std::size_t drawn_width_ = 0;
};

}  // namespace kvasir::report
