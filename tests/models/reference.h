// The models once more: naive, in double precision and in PyTorch's order of parameters.
//
// Gradients are checked against its finite differences. In double precision these are good to
// about 1e-8, where differences of a float model would drown in rounding.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "models/model.h"

namespace tutti {

// What layer `index` makes of one sample. Parameters are in PyTorch's order; `kept` holds what
// skips keep for their adds.
std::vector<double> apply_layer(const Architecture& architecture, size_t index,
                                const std::vector<double>& torch, const std::vector<double>& x,
                                std::map<size_t, std::vector<double>>& kept);

// What a batch norm makes of all samples. `training`: by their own means, ghost by ghost; then
// `off`, where given, is how far each running statistic is from them, summed over samples.
void apply_batch_norm(const Architecture& architecture, const Layer& layer,
                      const std::vector<double>& torch, bool training,
                      std::vector<std::vector<double>>& samples, std::vector<double>* off);

class Reference {
 public:
  Reference(const Architecture& architecture, uint64_t seed);

  // Scores of all samples, with the dropout masks of the batch's step when training. `flat` is
  // ordered as the model's memory.
  std::vector<double> scores(const std::vector<double>& flat, const Batch& batch, bool training,
                             std::vector<double>* off = nullptr) const;
  // For each value that is a running statistic how far it is off, summed over samples.
  std::vector<double> statistics_off(const std::vector<double>& flat, const Batch& batch) const {
    std::vector<double> off(flat.size());
    scores(flat, batch, true, &off);
    return off;
  }
  // What Model::gradient returns: the sum of the losses, penalties included.
  double training_loss(const std::vector<double>& flat, const Batch& batch) const;

 private:
  const Architecture& architecture_;
  uint64_t seed_;
  std::vector<size_t> memory_of_;  // position in memory of each value in PyTorch's order
};

}  // namespace tutti
