// Which coordinates a round updates: what a scheduler decides, by pure arithmetic.
//
// Lee et al., "On Model Parallelization and Scheduling Strategies for Distributed Machine
// Learning" (STRADS), NIPS 2014: a coordinate is drawn in proportion to how much it changed last,
// and taken if its feature is hardly correlated with those taken already. Updating correlated ones
// at once overshoots. Here the draw is also in proportion to the square of the rounds since the
// coordinate's last turn: one that was just solved for has nothing to gain before others move.
// `random` is Shotgun (Bradley et al., ICML 2011): no such look.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/schema.h"

namespace tutti {

// Which coordinates come next: those that change most, any, or all in turn.
enum class CoordinateOrder { kPriority, kRandom, kCyclic };
constexpr auto words(CoordinateOrder) { return WordList<3>{"priority", "random", "cyclic"}; }

class CoordinateSchedule {
 public:
  // The absolute correlation of two features.
  using Correlation = std::function<double(uint32_t, uint32_t)>;

  CoordinateSchedule(CoordinateOrder order, size_t coordinates, size_t parallel, double conflict,
                     uint64_t seed, Correlation correlation);

  // For round `round`, from 0 on: at least one, at most `parallel`, none twice.
  std::vector<uint32_t> pick(uint64_t round);
  // What became of a coordinate that was picked.
  void changed(uint32_t coordinate, double size);

 private:
  std::vector<uint32_t> drawn(uint64_t round, bool by_priority) const;
  std::vector<uint32_t> without_conflicts(const std::vector<uint32_t>& candidates) const;

  CoordinateOrder order_;
  size_t parallel_;
  double conflict_;
  uint64_t seed_;
  Correlation correlation_;
  std::vector<double> changes_;   // the last of each; negative: not updated yet
  std::vector<uint64_t> rounds_;  // in which it was picked last
};

}  // namespace tutti
