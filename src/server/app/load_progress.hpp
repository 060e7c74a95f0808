// How far loading is, for who asks a server that is not ready: a word for the stage, and a share where the stage's size
// is known.
// Thread rule: any thread.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>

namespace kvasir::server {

class LoadProgress {
 public:
  LoadProgress();

  // A stage begins. expected_bytes: what it will add to the resident memory of the process; 0 = unknown.
  void stage(std::string name, std::uint64_t expected_bytes = 0);

  struct Report {
    std::string stage;
    double seconds = 0;  // since loading began
    double ratio = 0;    // of the whole load, 0 to 1: an estimate from resident memory
  };
  Report report() const;

 private:
  mutable std::mutex mutex_;
  std::string stage_ = "starting";
  std::uint64_t began_ns_;
  std::uint64_t expected_bytes_ = 0;
  std::uint64_t resident_before_ = 0;
};

}  // namespace kvasir::server
