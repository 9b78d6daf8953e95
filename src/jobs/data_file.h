// data.json of a run folder describes the training data as far as predictions need it. So a run can
// predict without that data, and a file with other contents is noticed.
#pragma once

#include <optional>
#include <string>

#include "data/description.h"
#include "jobs/resolve.h"
#include "jobs/task_identity.h"

namespace tutti {

inline constexpr int kDataSchema = 1;

struct RunData {
  DataDescription description;
  std::string metric;           // accuracy | mse
  std::string contents, split;  // fingerprints of the samples and of how they were split
  std::string task;             // the fingerprint of task_identity()

  bool operator==(const RunData&) const = default;
};

std::string data_file_of(const std::string& folder);
// `task` is task_identity() of this job.
RunData run_data(const Job& job, const Resolved& resolved, const TaskIdentity& task);

void save_run_data(const std::string& folder, const RunData& data);
// Returns nothing when the file does not exist: an older version wrote the run. Throws DataError
// when the file is damaged, was edited, or comes from a newer version.
std::optional<RunData> load_run_data(const std::string& folder);

// Throws DataError, naming the files of the job, unless the run was trained on `data`.
void require_same_data(const RunData& trained_on, const Job& job, const Data& data);

}  // namespace tutti
