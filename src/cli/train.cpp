#include <fmt/format.h>
#include <unistd.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "core/error.h"
#include "core/printable.h"
#include "jobs/launcher.h"
#include "jobs/prediction_history.h"

namespace tutti {
namespace {

ProgressStyle style_of(const TrainOptions& options, ProgressStyle asked) {
  if (options.quiet) return ProgressStyle::kNone;
  if (asked != ProgressStyle::kNone) return asked;
  return isatty(STDERR_FILENO) ? ProgressStyle::kLive : ProgressStyle::kLines;
}

// A node that ended by an error of its own is no loss: who missed it has nothing to add.
bool missed_one_that_failed(const NodeOutcome& outcome, const RunRecord& record) {
  return outcome.lost_peer != kAnyRank &&
         record.outcomes[static_cast<size_t>(outcome.lost_peer)].kind == NodeOutcome::Kind::kFailed;
}

// Returns the prediction that was made of the job, if it holds for it. A file that is wrong is
// reported, and costs nothing else.
std::optional<Prediction> prediction_beside(const std::string& file, const Job& job) {
  const std::string path = prediction_file_of(file);
  try {
    std::optional<Prediction> prediction = read_prediction(path);
    if (!prediction) return std::nullopt;
    const std::string why_not = why_not_of(*prediction, job);
    if (why_not.empty()) return prediction;
    tell(printable(fmt::format("tutti: {} is not used: {}\n", path, why_not)));
  } catch (const Error& error) {
    tell(printable(fmt::format("tutti: {}\n", error.what())));
  }
  return std::nullopt;
}

void keep_outcome(const RunRecord& record, const Job& job, const std::atomic<bool>& stop) {
  const auto recorded = recorded_prediction(record, job);
  if (!recorded || record.exit_code != 0) return;
  if (const auto outcome = outcome_of(*record.prediction, *recorded, record.virtual_clock))
    add_to_prediction_history(
        cache_folder() + kHistoryFile, *outcome,
        [](const std::string& text) { tell(printable(fmt::format("tutti: {}\n", text))); }, stop);
}

// The launcher knows the task when it has read the data.
void tell_other_task(const std::string& job_file, const LaunchOptions& asked,
                     const RunRecord& record) {
  if (asked.prediction && record.task && !record.prediction)
    tell(printable(fmt::format("tutti: {} is not used: the task or its data is another one\n",
                               prediction_file_of(job_file))));
}

}  // namespace

int run_train(const TrainOptions& options, const std::atomic<bool>& stop) {
  const auto asked = value_of(options.progress, ProgressStyle::kNone);
  Job job = job_of(options, stop, asked == ProgressStyle::kJson ? Notes::kKept : Notes::kTold);
  const LaunchOptions launch_options{.out = options.out,
                                     .keep_files = true,
                                     .progress = style_of(options, asked),
                                     .prediction = prediction_beside(options.job, job)};
  const RunRecord record = launch(job, launch_options, stop);
  tell_other_task(options.job, launch_options, record);
  keep_outcome(record, job, stop);
  if (options.json)
    std::cout << json_text(to_json(record, job)) << "\n";
  else
    std::cout << printable(summary(record, job));
  if (record.exit_code != 0) {
    tell(fmt::format("tutti: {}: {}\n", word_of(record.status), printable(record.error)));
    for (const NodeOutcome& outcome : record.outcomes)
      if (!outcome.error.empty() && !record.error.starts_with(outcome.error) &&
          outcome.error != word_of(record.status) && !missed_one_that_failed(outcome, record))
        tell(fmt::format("tutti:   {}\n", printable(outcome.error)));
  }
  return record.exit_code;
}

}  // namespace tutti
