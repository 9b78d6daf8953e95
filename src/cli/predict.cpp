// `tutti predict`: what the parameters of a run say about new samples, as CSV.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "core/bytes.h"
#include "core/error.h"
#include "data/prediction.h"
#include "jobs/launcher.h"
#include "jobs/parameters_file.h"
#include "jobs/plugins.h"
#include "jobs/run_folder.h"
#include "models/sparse_model.h"

namespace tutti {
namespace {

constexpr size_t kBatch = 250;

struct Predictions {
  std::string csv;
  double loss = 0, correct = 0;
  size_t count = 0;
};

// A field of a CSV file: quoted when it has to be.
std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string result = "\"";
  for (const char c : text) result += c == '"' ? "\"\"" : std::string(1, c);
  return result + "\"";
}

// The rows that the batch touches; those that training never met are as they start.
void hold_rows(SparseModel& model, const Batch& batch, const Rows& rows, uint64_t seed) {
  const Architecture& architecture = model.architecture();
  std::vector<uint64_t> keys;
  touched_rows(architecture, batch, keys);
  model.hold(keys);
  const size_t width = architecture.row_width;
  for (size_t i = 0; i < keys.size(); ++i) {
    const std::span<float> row = model.parameters().subspan(i * width, width);
    const auto found = std::lower_bound(rows.keys.begin(), rows.keys.end(), keys[i]);
    if (found == rows.keys.end() || *found != keys[i])
      initial_row(architecture, seed, keys[i], row);
    else
      std::copy_n(rows.values.begin() + (found - rows.keys.begin()) * std::ptrdiff_t(width), width,
                  row.begin());
  }
}

// A line now and then for who waits for predictions of many samples.
class PredictProgress {
 public:
  explicit PredictProgress(bool quiet) : style_(progress_style(quiet)) {}
  ~PredictProgress() {
    if (open_) tell("\r\033[K");
  }
  PredictProgress(const PredictProgress&) = delete;
  PredictProgress& operator=(const PredictProgress&) = delete;

  void at(size_t done, size_t all) {
    const auto now = std::chrono::steady_clock::now();
    if (style_ == ProgressStyle::kNone || now < due_) return;
    const bool live = style_ == ProgressStyle::kLive;
    due_ = now + (live ? std::chrono::milliseconds(100) : std::chrono::seconds(5));
    tell(fmt::format("{}predicted {} of {} samples{}", live ? "\r\033[K" : "", done, all,
                     live ? "" : "\n"));
    open_ = live;
  }

 private:
  ProgressStyle style_;
  bool open_ = false;
  std::chrono::steady_clock::time_point due_ =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(1500);
};

Predictions predict_all(Model& model, const Dataset& dataset, std::span<const uint32_t> samples,
                        const std::function<void(const Batch&)>& prepare,
                        PredictProgress& progress) {
  const bool classify = model.architecture().classification;
  const auto outputs = static_cast<size_t>(model.architecture().outputs);
  const auto positions = static_cast<size_t>(model.architecture().positions);
  const std::vector<std::string> names = dataset.class_names();
  Predictions result;
  result.csv = classify ? "sample,prediction,score\n" : "sample,prediction\n";
  Batch batch;
  for (size_t begin = 0; begin < samples.size(); begin += kBatch) {
    const auto part = samples.subspan(begin, std::min(kBatch, samples.size() - begin));
    dataset.gather(part, batch);
    prepare(batch);
    std::vector<float> scores(part.size() * positions * outputs);
    model.predict(batch, scores);
    const Evaluation evaluation = model.evaluate(batch);
    result.loss += evaluation.loss;
    result.correct += evaluation.correct;
    result.count += part.size();
    progress.at(result.count, samples.size());
    for (size_t i = 0; i < part.size(); ++i) {
      const float* row = scores.data() + ((i + 1) * positions - 1) * outputs;  // the last one
      if (!classify) {
        result.csv += fmt::format("{},{}\n", part[i], row[0]);
        continue;
      }
      const auto best = static_cast<size_t>(std::max_element(row, row + outputs) - row);
      result.csv += fmt::format("{},{},{}\n", part[i], csv_field(names[best]), row[best]);
    }
  }
  return result;
}

Job job_of_run(const PredictOptions& options) {
  std::error_code failed;
  if (!std::filesystem::exists(std::filesystem::path(options.run) / "job.toml", failed))
    throw ConfigError(
        "RUN", fmt::format("{}: is not the folder of a run: it has no job.toml", options.run));
  Job job = load_job(options.run + "/job.toml", {});
  if (job.strategy_kind == "early_exit")
    throw ConfigError("RUN",
                      fmt::format("{}: is a run of strategy.kind = \"early_exit\", whose exits and "
                                  "rounded activations are not in parameters.safetensors; its "
                                  "run.json has what it answered on the test samples",
                                  options.run));
  return job;
}

// Only a run that ends well keeps its parameters. Before anything is read: who asks for the
// predictions of another one should hear that, and what to do, and not of a file.
void require_parameters(const PredictOptions& options, const Job& job) {
  std::error_code failed;
  if (std::filesystem::exists(options.run + "/parameters.safetensors", failed) || failed) return;
  const std::string again = fmt::format("`tutti train {}/job.toml", options.run);
  if (job.cluster.cost_only)
    throw ConfigError("RUN", fmt::format("{}: is a run of costs only (cluster.cost_only = true), "
                                         "which computes no parameters to predict with; {} --set "
                                         "cluster.cost_only=false` computes them",
                                         options.run, again));
  std::string status = "did not end: it has no run.json";
  if (std::filesystem::exists(options.run + "/run.json", failed)) {
    const auto record = nlohmann::json::parse(read_file(options.run + "/run.json"), nullptr, false);
    const auto said = record.is_object() ? record.find("status") : record.end();
    status = said == record.end() || !said->is_string() || *said == "done"
                 ? "has lost its parameters.safetensors"
                 : fmt::format("ended as \"{}\"", said->get<std::string>());
  }
  throw ConfigError("RUN", fmt::format("{}: this run {}; only one that is done keeps parameters "
                                       "to predict with: train it again with {}`",
                                       options.run, status, again));
}

// Names of classes, words and the scale of numbers are those of the training samples, whatever is
// predicted.
Data training_data(const PredictOptions& options, const Job& job) {
  try {
    return load_data(job.task.data, job.task.seed, job.base_dir);
  } catch (const DataError& error) {
    throw DataError(
        fmt::format("{} (the data that the run was trained on says what its classes "
                    "and numbers mean, so it is needed to predict; put it back, or "
                    "change task.data in {}/job.toml)",
                    error.what(), options.run));
  }
}

}  // namespace

int run_predict(const PredictOptions& options) {
  const Job job = job_of_run(options);
  const bool takes_labels = job.task.data.kind == "idx" || job.task.data.kind == "fashion-mnist";
  if (!options.labels.empty() && (options.data.empty() || !takes_labels))
    throw ConfigError("--labels",
                      "--labels goes with --data and IDX files; other data brings its "
                      "labels along");
  require_parameters(options, job);
  Data trained_on = training_data(options, job);
  trained_on.dataset = dataset_for(job.task.model, trained_on.dataset);
  const Architecture architecture = make_architecture(job.task.model, *trained_on.dataset);
  const std::string path = options.run + "/parameters.safetensors";
  const bool some = architecture.row_width > 0 && holds_some_rows(path);
  const size_t floats = some ? 0 : architecture.parameter_count;
  Buffer<float> parameters(floats), gradients(floats);
  Rows rows;
  if (some)
    rows = load_rows(path, architecture);
  else
    load_parameters(path, architecture, parameters.span());

  PredictionData data{trained_on.dataset, true};
  std::vector<uint32_t> samples = trained_on.splits.test;
  if (!options.data.empty()) {
    data = load_for_prediction(job.task.data, options.data, options.labels, *trained_on.dataset);
    data.dataset = dataset_for(job.task.model, std::move(data.dataset));
    samples.resize(data.dataset->size());
    std::iota(samples.begin(), samples.end(), 0u);
  }
  const auto model = load_models(architecture, 1)(
      architecture, {parameters.span(), gradients.span()}, {.seed = job.task.seed, .threads = 1});
  const auto prepare = [&](const Batch& batch) {
    if (some) hold_rows(dynamic_cast<SparseModel&>(*model), batch, rows, job.task.seed);
  };
  const Predictions predictions = [&] {
    PredictProgress progress(options.quiet);
    return predict_all(*model, *data.dataset, samples, prepare, progress);
  }();
  const std::string metric = architecture.classification ? "accuracy" : "mse";
  const auto count = static_cast<double>(std::max<size_t>(1, predictions.count));
  const double quality =
      architecture.classification ? predictions.correct / count : 2 * predictions.loss / count;

  if (!options.output.empty())
    write_file(options.output, predictions.csv);
  else if (!options.json)
    std::cout << predictions.csv;
  if (options.json) {
    nlohmann::json result = {
        {"samples", predictions.count}, {"metric", metric}, {"quality", nullptr}};
    if (data.labelled) result["quality"] = quality;
    std::cout << result.dump() << "\n";
  } else if (data.labelled) {
    tell(fmt::format("{} {:.4f} on {} samples\n", metric, quality, predictions.count));
  }
  return 0;
}

}  // namespace tutti
