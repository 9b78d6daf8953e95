// A task in which every sample has the same gradient, whatever has been learnt: parameters move by
// exactly the steps that were taken.
#pragma once

#include <fmt/format.h>

#include <fstream>
#include <string>
#include <vector>

#include "tests/support/parameters.h"

namespace tutti::testing_support {

inline constexpr double kTarget = 1e6, kRate = 1e-7;
// 96 samples to train on: 4 whole batches, each of 4 equal shares.
inline constexpr int kRows = 160, kBatch = 24;

// Every sample is x = 1, y = 1e6. The prediction stays so far below that the gradient of a squared
// error is -1e6 for weight and bias, whatever has been learnt.
inline Settings constant_gradient(const std::string& file) {
  std::ofstream out(file);
  for (int i = 0; i < kRows; ++i) out << "1," << kTarget << "\n";
  return {
      "task.data.kind=csv",        "task.data.path=" + file, "task.data.header=no",
      "task.data.standardise=false",
      "task.data.regression=true", "task.data.test=0.25",    "task.data.validation=0.2",
      "task.model=linear",         "optimizer.kind=sgd",     fmt::format("optimizer.lr={}", kRate)};
}

// Returns how far weight and bias of a run have moved, in steps of whole batches.
inline std::vector<double> steps_moved(const Job& job, const std::string& folder) {
  const Data data = load_data(job.task.data, job.task.seed, job.base_dir);
  const Architecture architecture = architecture_of(job, data);
  std::vector<float> before(architecture.parameter_count), after(architecture.parameter_count);
  initialise(architecture, job.task.seed, before);
  load_parameters(folder + "/parameters.safetensors", architecture, after);
  std::vector<double> moved;
  for (size_t i = 0; i < before.size(); ++i)
    moved.push_back((static_cast<double>(after[i]) - static_cast<double>(before[i])) /
                    (kRate * kTarget));
  return moved;
}

}  // namespace tutti::testing_support
