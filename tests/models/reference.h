// The models once more: naive, in double precision and in PyTorch's order of parameters.
//
// Gradients are checked against its finite differences. In double precision these are good to
// about 1e-8, where differences of a float model would drown in rounding.
#pragma once

#include <cstdint>
#include <vector>

#include "models/model.h"

namespace tutti {

class Reference {
 public:
  Reference(const Architecture& architecture, uint64_t seed);

  // Scores of all samples, with the dropout masks of the batch's step when training. `flat` is
  // ordered as the model's memory.
  std::vector<double> scores(const std::vector<double>& flat, const Batch& batch,
                             bool training) const;
  // What Model::gradient returns: the sum of the losses, penalties included.
  double training_loss(const std::vector<double>& flat, const Batch& batch) const;

 private:
  std::vector<double> apply(size_t layer, const std::vector<double>& torch,
                            const std::vector<double>& x) const;

  const Architecture& architecture_;
  uint64_t seed_;
  std::vector<size_t> memory_of_;  // position in memory of each value in PyTorch's order
};

}  // namespace tutti
