// `tutti predict`: what the parameters of a run say about new samples, as CSV.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "core/error.h"
#include "core/units.h"
#include "data/prediction.h"
#include "jobs/kept_answers.h"
#include "jobs/launcher.h"
#include "jobs/plugins.h"
#include "jobs/run_folder.h"
#include "jobs/trained_run.h"
#include "models/losses.h"
#include "models/sparse_model.h"
#include "strategies/evaluation.h"

namespace tutti {
namespace {

constexpr size_t kBatch = 250;
// Rows with more classes are too long to read: they show the probability of the prediction only.
constexpr size_t kMostProbabilities = 20;

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

// Returns softmax(scores), the probabilities that the model was trained to give. The largest score
// is subtracted first, so that no exponential overflows.
std::vector<double> probabilities_of(std::span<const float> scores) {
  const float highest = *std::max_element(scores.begin(), scores.end());
  std::vector<double> result;
  double sum = 0;
  for (const float score : scores) {
    result.push_back(std::exp(static_cast<double>(score) - static_cast<double>(highest)));
    sum += result.back();
  }
  for (double& probability : result) probability /= sum;
  return result;
}

// The lines of the CSV file.
class PredictionTable {
 public:
  PredictionTable(const Architecture& architecture, const PredictionData& data)
      : classify_(architecture.classification),
        labelled_(data.labelled),
        outputs_(static_cast<size_t>(architecture.outputs)),
        positions_(static_cast<size_t>(architecture.positions)),
        names_(data.dataset->class_names()) {}

  // The header has a column named `by`, for who answered each sample, unless `by` is empty.
  std::string header(const std::string& by = "") const {
    if (!classify_) return labelled_ ? "sample,prediction,target\n" : "sample,prediction\n";
    std::string text = "sample,prediction,probability";
    if (labelled_) text += ",label";
    if (!by.empty()) text += "," + by;
    for (size_t i = 0; i < outputs_ && tells_all(); ++i) text += "," + csv_field("p_" + names_[i]);
    return text + "\n";
  }

  // The row of sample `i` of the batch. The prediction for a sequence is what follows its end.
  std::string row(const Batch& batch, size_t i, std::span<const float> scores,
                  const std::string& by = "") const {
    const size_t last = (i + 1) * positions_ - 1;
    const std::span<const float> own = scores.subspan(last * outputs_, outputs_);
    std::string text = fmt::format("{},", batch.samples[i]);
    if (!classify_) {
      text += fmt::format("{}", own[0]);
      return labelled_ ? text + fmt::format(",{}\n", batch.targets[i]) : text + "\n";
    }
    const auto best = static_cast<size_t>(std::max_element(own.begin(), own.end()) - own.begin());
    const std::vector<double> probabilities = probabilities_of(own);
    text += fmt::format("{},{:.6g}", csv_field(names_[best]), probabilities[best]);
    if (labelled_) text += "," + csv_field(names_[static_cast<size_t>(batch.labels[last])]);
    if (!by.empty()) text += "," + csv_field(by);
    for (size_t k = 0; k < outputs_ && tells_all(); ++k)
      text += fmt::format(",{:.6g}", probabilities[k]);
    return text + "\n";
  }

 private:
  bool tells_all() const { return outputs_ <= kMostProbabilities; }

  bool classify_, labelled_;
  size_t outputs_, positions_;
  std::vector<std::string> names_;
};

Predictions predict_all(Model& model, const PredictionData& data, std::span<const uint32_t> samples,
                        const std::function<void(const Batch&)>& prepare,
                        PredictProgress& progress) {
  const Architecture& architecture = model.architecture();
  const PredictionTable table(architecture, data);
  Predictions result;
  result.csv = table.header();
  Batch batch;
  for (size_t begin = 0; begin < samples.size(); begin += kBatch) {
    const auto part = samples.subspan(begin, std::min(kBatch, samples.size() - begin));
    data.dataset->gather(part, batch);
    prepare(batch);
    std::vector<float> scores(part.size() *
                              static_cast<size_t>(architecture.positions * architecture.outputs));
    model.predict(batch, scores);
    const Evaluation evaluation = model.evaluate(batch);
    result.loss += evaluation.loss;
    result.correct += evaluation.correct;
    result.count += part.size();
    progress.at(result.count, samples.size());
    for (size_t i = 0; i < part.size(); ++i) result.csv += table.row(batch, i, scores);
  }
  return result;
}

// Predicts like the function above, for a run that needs more than its model to answer. Each row
// also says who answered.
Predictions answer_all(Answerer& answerer, const Architecture& architecture,
                       const PredictionData& data, std::span<const uint32_t> samples,
                       PredictProgress& progress) {
  const PredictionTable table(architecture, data);
  Predictions result;
  result.csv = table.header("exit");
  Batch batch;
  for (size_t begin = 0; begin < samples.size(); begin += kEvaluationChunk) {
    const auto part = samples.subspan(begin, std::min(kEvaluationChunk, samples.size() - begin));
    data.dataset->gather(part, batch);
    const Answerer::Answers answers = answerer.answer(batch);
    result.correct += static_cast<double>(count_correct(answers.scores, batch.labels));
    result.count += part.size();
    progress.at(result.count, samples.size());
    for (size_t i = 0; i < part.size(); ++i)
      result.csv += table.row(batch, i, answers.scores, answers.by[i]);
  }
  return result;
}

// What a run has left is not overwritten by what is predicted from it, nor are the samples.
void check_output(const PredictOptions& options) {
  namespace fs = std::filesystem;
  if (options.output.empty() || options.output == kStandardOutput) return;
  std::error_code failed;  // what is not there yet is nobody's file
  const fs::path output = fs::weakly_canonical(options.output, failed);
  const fs::path run = fs::weakly_canonical(options.run, failed);
  for (const std::string& input : {options.data, options.labels})
    if (!input.empty() && fs::weakly_canonical(input, failed) == output)
      throw ConfigError("--output", fmt::format("--output {} is a file that the samples are read "
                                                "from; name another",
                                                options.output));
  const auto [rest, ignored] = std::mismatch(run.begin(), run.end(), output.begin(), output.end());
  if (rest == run.end() && fs::exists(output, failed))
    throw ConfigError("--output",
                      fmt::format("--output {} is a file of the run itself, which would be lost; "
                                  "name another",
                                  options.output));
}

Job job_to_predict(const PredictOptions& options) {
  Job job = job_of_run(options.run);
  const bool takes_labels = job.task.data.source.entry().labels_apart;
  if (!options.labels.empty() && (options.data.empty() || !takes_labels))
    throw ConfigError("--labels",
                      "--labels goes with --data and IDX files; other data brings its "
                      "labels along");
  return job;
}

struct Samples {
  PredictionData data;
  std::vector<uint32_t> numbers;
};

// Returns the new samples that were asked for, or else the test samples of the run.
Samples samples_for(const PredictOptions& options, const TrainedRun& run) {
  if (options.data.empty()) {
    Data data = training_data(run);
    return {{std::move(data.dataset), true}, std::move(data.splits.test)};
  }
  PredictionData data =
      load_for_prediction(run.job.task.data, options.data, options.labels, run.data);
  data.dataset = dataset_for(run.job.task.model, std::move(data.dataset));
  std::vector<uint32_t> numbers(data.dataset->size());
  std::iota(numbers.begin(), numbers.end(), 0u);
  return {std::move(data), std::move(numbers)};
}

Predictions predict(TrainedRun& run, const Samples& samples, bool quiet) {
  Buffer<float> gradients(run.parameters.size());
  const auto model = load_models(run.architecture, 1)
                         .whole(run.architecture, {run.parameters.span(), gradients.span()},
                                {.seed = run.job.task.seed, .threads = 1});
  const auto prepare = [&](const Batch& batch) {
    if (run.rows)
      hold_rows(dynamic_cast<SparseModel&>(*model), batch, *run.rows, run.job.task.seed);
  };
  PredictProgress progress(quiet);
  if (const auto answerer = load_answerer(run.folder, run.job, *model))
    return answer_all(*answerer, run.architecture, samples.data, samples.numbers, progress);
  return predict_all(*model, samples.data, samples.numbers, prepare, progress);
}

}  // namespace

int run_predict(const PredictOptions& options) {
  check_output(options);
  TrainedRun run = read_trained_run(options.run, job_to_predict(options));
  const Samples samples = samples_for(options, run);
  const Predictions predictions = predict(run, samples, options.quiet);
  const bool classify = run.architecture.classification;
  const std::string metric = classify ? "accuracy" : "mse";
  const auto count = static_cast<double>(std::max<size_t>(1, predictions.count));
  const double quality = classify ? predictions.correct / count : 2 * predictions.loss / count;

  if (!options.output.empty())
    write_file(options.output, predictions.csv);
  else if (!options.json)
    write_file("-", predictions.csv);
  if (options.json) {
    nlohmann::json result = {
        {"samples", predictions.count}, {"metric", metric}, {"quality", nullptr}};
    if (samples.data.labelled) result["quality"] = quality;
    std::cout << result.dump() << "\n";
  } else if (samples.data.labelled) {
    tell(fmt::format("{} {} on {} samples\n", metric, human_quality(quality), predictions.count));
  }
  return 0;
}

}  // namespace tutti
