// What a run left to predict with, read and checked: its job, what its data meant, its parameters.
#pragma once

#include <optional>
#include <string>

#include "core/bytes.h"
#include "jobs/data_file.h"
#include "jobs/parameters_file.h"

namespace tutti {

struct TrainedRun {
  std::string folder;
  Job job;
  DataDescription data;  // that it was trained on
  Architecture architecture;
  Buffer<float> parameters;  // all of them, or none:
  std::optional<Rows> rows;  // those rows of a sparse model that training touched

  std::optional<RunData> stored;  // its data.json; nothing: the run is of an older version
  std::optional<Data> read;       // such a run has its training data read at once
};

// The job of a run. Throws ConfigError when the folder is none of a run, or when the run kept no
// parameters, saying why and what to do.
Job job_of_run(const std::string& folder);

// Throws DataError when a file of the run is damaged, was changed, or does not fit the others. What
// could not be checked is told on standard error.
TrainedRun read_trained_run(const std::string& folder, Job job);

// The data that the run was trained on, read again as its model takes it. Throws DataError when it
// is not there any more, or has changed.
Data training_data(const TrainedRun& run);

}  // namespace tutti
