#include "jobs/trained_run.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/printable.h"
#include "core/shallow_json.h"
#include "jobs/progress.h"
#include "jobs/resolve.h"
#include "jobs/run_folder.h"
#include "jobs/run_status.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::string parameters_path(const std::string& folder) {
  return folder + "/parameters.safetensors";
}

// Returns null when there is no record, or none that can be read.
json record_of(const std::string& folder) {
  std::error_code failed;
  const std::string path = folder + "/run.json";
  if (!fs::exists(path, failed)) return {};
  json record = parse_shallow_json(read_file(path));
  return record.is_object() ? record : json();
}

// Only a run that ends well keeps its parameters. This is checked before anything is read, so that
// the user hears the reason and what to do, not the name of a missing file.
void require_parameters(const std::string& folder, const Job& job) {
  std::error_code failed;
  if (fs::exists(parameters_path(folder), failed) || failed) return;
  const std::string again = fmt::format("`tutti train {}/job.toml", folder);
  if (job.cluster.cost_only)
    throw ConfigError("RUN", fmt::format("{}: is a run of costs only (cluster.cost_only = true), "
                                         "which computes no parameters to predict with; {} --set "
                                         "cluster.cost_only=false` computes them",
                                         folder, again));
  std::string status = "did not end: it has no run.json";
  if (fs::exists(folder + "/run.json", failed)) {
    const json record = record_of(folder);
    const auto said = record.is_object() ? record.find("status") : record.end();
    status = said == record.end() || !said->is_string() || ended_well(said->get<std::string>())
                 ? "has lost its parameters.safetensors"
                 : fmt::format("ended as \"{}\"", said->get<std::string>());
  }
  throw ConfigError("RUN", fmt::format("{}: this run {}; only one that is done keeps parameters "
                                       "to predict with: train it again with {}`",
                                       folder, status, again));
}

Data read_training_data(const std::string& folder, const Job& job, const char* why) {
  try {
    Data data = load_data(job.task.data, job.task.seed, job.base_dir);
    data.dataset = dataset_for(job.task.model, std::move(data.dataset));
    return data;
  } catch (const DataError& error) {
    throw DataError(fmt::format("{} ({}; put it back, or change task.data in {}/job.toml)",
                                error.what(), why, folder));
  }
}

// Runs of older versions do not keep the meaning of their classes and numbers, so the training data
// is read for it.
void describe_by_training_data(TrainedRun& run) {
  tell(
      fmt::format("tutti: {}: has no data.json, as runs of older versions: names and scales are "
                  "read from its training data, and are wrong if that has changed since\n",
                  printable(run.folder)));
  run.read = read_training_data(run.folder, run.job,
                                "the data that the run was trained on says what its classes and "
                                "numbers mean, so it is needed to predict");
  run.data = describe(run.job.task.data, *run.read->dataset);
}

Architecture architecture_of(const TrainedRun& run) {
  const ModelConfig& model = run.job.task.model;
  Architecture result = trained_architecture(run.job, run.data);
  if (result.positions != run.data.answers_per_sample)
    throw DataError(
        fmt::format("{}: model {} makes {} predictions for a sample, but the data has "
                    "{} answers; job.toml and data.json are not of one run",
                    run.folder, model.kind(), result.positions, run.data.answers_per_sample));
  return result;
}

// The size is checked before memory is allocated, because anybody may have changed the files.
void require_size(const std::string& path, const Architecture& architecture) {
  std::error_code failed;
  const uint64_t bytes = fs::file_size(path, failed);
  if (!failed && bytes / sizeof(float) < architecture.parameter_count)
    throw DataError(
        fmt::format("{}: has {} bytes, but the model of the run has {} parameters; it is not the "
                    "parameters of this run, or it is damaged",
                    path, bytes, architecture.parameter_count));
}

void read_parameters(TrainedRun& run) {
  const std::string path = parameters_path(run.folder);
  if (run.architecture.row_width > 0 && holds_some_rows(path)) {
    run.rows = load_rows(path, run.architecture);
    return;
  }
  require_size(path, run.architecture);
  run.parameters = Buffer<float>(run.architecture.parameter_count);
  load_parameters(path, run.architecture, run.parameters.span());
}

// Checks that the parameters are those that the run ended with.
void check_parameters(const TrainedRun& run) {
  const json record = record_of(run.folder);
  const json said = record.is_object() ? record.value("parameters_sha256", json()) : json();
  if (!said.is_string() || said.get<std::string>().empty()) {
    tell(
        fmt::format("tutti: {}: {} parameters_sha256, so that nothing says whether "
                    "parameters.safetensors is the file that the run wrote\n",
                    printable(run.folder),
                    record.is_object() ? "its run.json has no" : "it has no run.json with a"));
    return;
  }
  const std::string found = run.rows ? rows_sha256(run.rows->keys, run.rows->values)
                                     : parameters_sha256(run.architecture, run.parameters.span());
  const auto expected = said.get<std::string>();
  if (found == expected) return;
  throw DataError(fmt::format(
      "{}: was changed since the run wrote it: its checksum is {}, run.json says "
      "parameters_sha256 = {}; put the file of the run back, or train it again with "
      "`tutti train {}/job.toml`",
      parameters_path(run.folder), found.substr(0, 12), expected.substr(0, 12), run.folder));
}

}  // namespace

Job job_of_run(const std::string& folder) {
  std::error_code failed;
  if (!fs::exists(fs::path(folder) / "job.toml", failed))
    throw ConfigError("RUN",
                      fmt::format("{}: is not the folder of a run: it has no job.toml", folder));
  Job job = load_job(folder + "/job.toml", {});
  require_parameters(folder, job);
  return job;
}

TrainedRun read_trained_run(const std::string& folder, Job job) {
  TrainedRun run;
  run.folder = folder;
  run.job = std::move(job);
  run.stored = load_run_data(folder);
  if (!run.stored) {
    describe_by_training_data(run);
  } else {
    run.data = run.stored->description;
    if (run.data.kind != run.job.task.data.kind())
      throw DataError(
          fmt::format("{}: is of data of kind {}, but job.toml has {}; they are not of "
                      "one run",
                      data_file_of(folder), run.data.kind, run.job.task.data.kind()));
  }
  run.architecture = architecture_of(run);
  read_parameters(run);
  check_parameters(run);
  return run;
}

Data training_data(const TrainedRun& run) {
  if (run.read) return *run.read;
  Data data = read_training_data(run.folder, run.job,
                                 "without --data the test samples of the run are predicted, which "
                                 "are part of its training data");
  require_same_data(*run.stored, run.job, data);
  return data;
}

}  // namespace tutti
