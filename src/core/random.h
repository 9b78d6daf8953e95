// Counter-based random numbers: Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as
// 1, 2, 3", SC 2011).
//
// The value at (seed, stream, counter) is a pure function, so a dropout mask, a shuffle or a fault
// schedule does not depend on who draws it, in which order, or on which node.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tutti {

std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

// What a stream of numbers is for. Two uses never share a stream.
enum class Stream : uint32_t {
  kInit = 1,
  kShuffle,
  kSplit,
  kDropout,
  kStraggler,
  kFault,
  kSynthetic,
  kTest,
  kGossip,
  kClients,
  kCoordinates,
};

class Random {
 public:
  // `a` and `b` select an independent sequence within the stream, e.g. (epoch) or (step, sample).
  Random(uint64_t seed, Stream stream, uint32_t a = 0, uint32_t b = 0);

  uint32_t next_u32();
  uint64_t next_u64();
  double uniform();                      // [0, 1)
  double normal();                       // mean 0, deviation 1
  uint64_t below(uint64_t limit);        // [0, limit), unbiased; limit > 0
  void shuffle(std::span<uint32_t> values);

 private:
  std::array<uint32_t, 2> key_;
  std::array<uint32_t, 4> counter_;
  std::array<uint32_t, 4> block_{};
  int used_ = 4;
};

}  // namespace tutti
