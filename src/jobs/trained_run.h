// Reads and checks what a run left for predictions: its job, the description of its data, its
// parameters.
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
  DataDescription data;  // of the training data
  Architecture architecture;
  Buffer<float> parameters;  // all of them, or none if there are `rows`
  std::optional<Rows> rows;  // of a sparse model: the rows that training touched

  std::optional<RunData> stored;  // its data.json; empty for runs of older versions
  std::optional<Data> read;       // training data, read at once for such runs
};

// Reads the job of a run. Throws ConfigError when the folder holds no run, or when the run kept no
// parameters, saying why and what to do.
Job job_of_run(const std::string& folder);

// Throws DataError when a file of the run is damaged, was changed, or does not fit the others.
// Warns on standard error about what could not be checked.
TrainedRun read_trained_run(const std::string& folder, Job job);

// Reads the training data of the run again, as its model takes it. Throws DataError when the data
// is missing or has changed.
Data training_data(const TrainedRun& run);

}  // namespace tutti
