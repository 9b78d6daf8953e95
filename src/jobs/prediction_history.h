// What became of predictions: one line of JSON for each run of a job that had one, in a file of the
// user's cache. Several programs may add to it at once; it keeps the newest lines alone. Lines that
// are damaged are left out, and that is said.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/schema.h"
#include "jobs/prediction.h"
#include "jobs/run_status.h"

namespace tutti {

struct PredictionOutcome {
  std::string made;  // when the run ended, UTC
  std::string task, job, cluster_name, strategy;
  Obtained obtained = Obtained::kSimulated;
  double predicted_s = 0, error = 0, took_s = 0;
  std::string program;  // its version
};
void visit(RecordVisitor& visitor, PredictionOutcome& outcome);

// Its name below the folder of the cache.
inline constexpr const char* kHistoryFile = "/predictions.jsonl";

using HistoryNote = std::function<void(const std::string&)>;
// In the order in which they were added. Nothing where there is no such file. Both wait at most two
// seconds for others who use the file, and not at all once they are to stop.
std::vector<PredictionOutcome> read_prediction_history(const std::string& path,
                                                       const HistoryNote& note,
                                                       const std::atomic<bool>& stop);
// What cannot be written is noted, and costs nothing else.
void add_to_prediction_history(const std::string& path, const PredictionOutcome& outcome,
                               const HistoryNote& note, const std::atomic<bool>& stop);
// The outcome of a run, if it had a prediction and reached its target.
std::optional<PredictionOutcome> outcome_of(const Prediction& prediction,
                                            const RecordedPrediction& recorded, bool simulated);

}  // namespace tutti
