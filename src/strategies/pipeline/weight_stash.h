// The weights of micro-batches that are under way while updates go on (weight stashing): a backward
// pass must see the weights that its forward pass saw, or the gradient is that of no function.
//
// Narayanan et al., "PipeDream: generalized pipeline parallelism for DNN training" (SOSP 2019).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/arithmetic.h"
#include "core/bytes.h"

namespace tutti {

class WeightStash {
 public:
  // Of `parameters`, for as many micro-batches at once as there are slots.
  WeightStash(std::span<float> parameters, size_t slots, Arithmetic arithmetic);

  void updated() { ++version_; }      // the parameters have changed
  void keep(size_t slot);             // at the forward pass
  int64_t missed(size_t slot) const;  // updates since then

  // Puts the weights of a slot in the parameters' place, and these back at its end. Checks that
  // they are those that were kept.
  class Borrowed {
   public:
    Borrowed(WeightStash& stash, size_t slot);
    ~Borrowed();
    Borrowed(const Borrowed&) = delete;
    Borrowed& operator=(const Borrowed&) = delete;

   private:
    WeightStash& stash_;
    size_t slot_;
  };

 private:
  struct Kept {
    Buffer<float> weights;
    int64_t version = 0;
    uint64_t fingerprint = 0;
  };
  void swap(Kept& kept);

  std::span<float> parameters_;
  Arithmetic arithmetic_;
  int64_t version_ = 0;
  std::vector<Kept> slots_;
};

}  // namespace tutti
