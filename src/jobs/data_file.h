// data.json of a run folder: what the run was trained on, as far as it takes to predict with it.
// With it a run needs its training data no more; a file of another content is noticed.
#pragma once

#include <optional>
#include <string>

#include "data/description.h"
#include "jobs/job.h"

namespace tutti {

inline constexpr int kDataSchema = 1;

struct RunData {
  DataDescription description;
  std::string metric;           // accuracy | mse
  std::string contents, split;  // fingerprints of the samples and of how they were split
  std::string task;             // the fingerprint in task_identity()

  bool operator==(const RunData&) const = default;
};

std::string data_file_of(const std::string& folder);
// `task` is what task_identity() says of the job, as JSON.
RunData run_data(const Job& job, const Prepared& prepared, const std::string& task);

void save_run_data(const std::string& folder, const RunData& data);
// Nothing where there is no such file: the run is of an older version. Throws DataError when the
// file is damaged, was edited, or is of a newer version.
std::optional<RunData> load_run_data(const std::string& folder);

// Throws DataError, naming the files of the job, unless `data` is what the run was trained on.
void require_same_data(const RunData& trained_on, const Job& job, const Data& data);

}  // namespace tutti
