// The parameters that a job starts from and those that it ends with.
#pragma once

#include "jobs/parameters_file.h"
#include "tests/support/jobs.h"

namespace tutti::testing_support {

inline Architecture architecture_of(const Job& job, const Data& data) {
  return make_architecture(job.task.model, data.dataset->sample_shape(), data.dataset->classes());
}

struct Trained {
  RunRecord record;
  std::vector<float> parameters;
  int64_t steps() const { return record.nodes.empty() ? 0 : record.nodes.front().steps; }
};

inline Trained trained(const Settings& settings) {
  const TemporaryFolder folder;
  Trained result{run(settings, folder / "run"), {}};
  EXPECT_EQ(result.record.status, RunStatus::kDone) << result.record.error;
  Job job = load_job("", settings);
  const Data data = load_data(job.task.data, job.task.seed, job.base_dir);
  const Architecture architecture = architecture_of(job, data);
  result.parameters.resize(architecture.parameter_count);
  load_parameters(folder / "run/parameters.safetensors", architecture, result.parameters);
  return result;
}

inline std::vector<float> parameters_after(const Settings& settings) {
  return trained(settings).parameters;
}

}  // namespace tutti::testing_support
