// The 16-lane reductions of kernels/kernels.hpp, one element at a time. Pure values.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <limits>

namespace kvasir::kernels::exact {

inline constexpr std::size_t kLanes = 16;

// The older value first: a NaN there is dropped, a NaN in b taken.
inline float max_of(float a, float b) { return a > b ? a : b; }

class LaneSum {
 public:
  void add(std::size_t index, float x) { lanes_[index % kLanes] += x; }
  void add_square(std::size_t index, float x) { lanes_[index % kLanes] = std::fma(x, x, lanes_[index % kLanes]); }
  float total() const {
    std::array<float, kLanes> lanes = lanes_;
    for (std::size_t width = kLanes / 2; width > 0; width /= 2)
      for (std::size_t i = 0; i < width; ++i) lanes[i] += lanes[i + width];
    return lanes[0];
  }

 private:
  std::array<float, kLanes> lanes_{};
};

class LaneMax {
 public:
  LaneMax() { lanes_.fill(-std::numeric_limits<float>::infinity()); }
  void add(std::size_t index, float x) { lanes_[index % kLanes] = max_of(lanes_[index % kLanes], x); }
  float total() const {
    std::array<float, kLanes> lanes = lanes_;
    for (std::size_t width = kLanes / 2; width > 0; width /= 2)
      for (std::size_t i = 0; i < width; ++i) lanes[i] = max_of(lanes[i], lanes[i + width]);
    return lanes[0];
  }

 private:
  std::array<float, kLanes> lanes_;
};

}  // namespace kvasir::kernels::exact
