// The parameters that a job starts from and those that it ends with.
#pragma once

#include "jobs/parameters_file.h"
#include "tests/support/jobs.h"

namespace tutti::testing_support {

inline Architecture architecture_of(const Job& job, const Data& data) {
  return make_architecture(job.task.model, data.dataset->sample_shape(), data.dataset->classes());
}

inline std::vector<float> parameters_after(const Settings& settings) {
  const TemporaryFolder folder;
  const RunRecord record = run(settings, folder / "run");
  EXPECT_EQ(record.status, "done") << record.error;
  Job job = load_job("", settings);
  const Data data = load_data(job.task.data, job.task.seed, job.base_dir);
  const Architecture architecture = architecture_of(job, data);
  std::vector<float> parameters(architecture.parameter_count);
  load_parameters(folder / "run/parameters.safetensors", architecture, parameters);
  return parameters;
}

}  // namespace tutti::testing_support
