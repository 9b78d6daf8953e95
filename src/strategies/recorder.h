// What a node writes down while it trains: a row per step, a row per evaluation, and for each
// update that it applied how old the gradient in it was.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace tutti {

struct StepRow {
  int64_t step = 0;
  double time_s = 0;  // since the training clock started
  double loss = 0;    // mean over this node's share of the batch
  double rate = 0;
  int64_t samples = 0;  // of all workers, so far
  int64_t share = 0;    // samples in the mean of the loss; 0: all nodes have the same loss
};

struct EvaluationRow {
  int64_t step = 0;
  double time_s = 0;
  double epoch = 0;
  int64_t samples = 0;  // of all workers, so far
  double loss = 0;      // NaN when only costs are simulated
  double quality = 0;   // accuracy, or mean squared error; NaN likewise
};

// An update to the parameters that this node holds, at the moment it is applied.
struct Applied {
  int64_t round = 0;     // which of its author's steps the update is
  double staleness = 0;  // updates that were missing from the parameters it was computed on
  double age_s = 0;      // since those parameters were read
};

// Over all that was applied: the ages of gradients, in updates and in seconds.
struct Freshness {
  static constexpr size_t kBuckets = 64;  // of the histogram; the last one also counts all above
  int64_t count = 0;
  double staleness_mean = 0, staleness_max = 0;
  double age_mean_s = 0, age_max_s = 0;
  std::vector<int64_t> histogram;  // updates of staleness 0, 1, ...; no longer than it needs to be
  // How far the order departs from the synchronous one, which applies all of a round before any of
  // the next: the share of pairs of updates from different rounds that came in reverse.
  double disorder = 0;
};

// What only some strategies have to say: series over steps, single figures, tables, by name.
struct Extra {
  static constexpr size_t kMostPoints = 512;  // of a series; a longer one is thinned out
  struct Series {
    std::vector<std::pair<int64_t, double>> points;  // step, value
    int64_t count = 0, every = 1;                    // measurements, and how many make a point
  };
  struct Table {
    std::vector<std::string> columns;
    std::vector<std::vector<double>> rows;
  };
  std::map<std::string, Series> series;
  std::map<std::string, double> figures;
  std::map<std::string, Table> tables;
};

class Recorder {
 public:
  using OnStep = std::function<void(const StepRow&)>;
  using OnEvaluation = std::function<void(const EvaluationRow&)>;
  Recorder() = default;
  Recorder(OnStep on_step, OnEvaluation on_evaluation)
      : on_step_(std::move(on_step)), on_evaluation_(std::move(on_evaluation)) {}

  void step(const StepRow& row) {
    steps_.push_back(row);
    if (on_step_) on_step_(row);
  }
  void evaluation(const EvaluationRow& row) {
    keep(row);
    tell(row);
  }
  // The two halves of it: so that who keeps books for others too says only what is new.
  void keep(const EvaluationRow& row) { evaluations_.push_back(row); }
  void tell(const EvaluationRow& row) const {
    if (on_evaluation_) on_evaluation_(row);
  }
  // Counts samples whose gradient this node has computed. When several nodes compute it together,
  // each with some of the weights, only one of them counts.
  void trained(size_t samples) { own_samples_ += static_cast<int64_t>(samples); }
  void applied(const Applied& update);
  void measure(const std::string& name, int64_t step, double value);
  void figure(const std::string& name, double value) { extra_.figures[name] = value; }
  void table(const std::string& name, Extra::Table table) {
    extra_.tables[name] = std::move(table);
  }
  // Counts an event that the strategy gives a name to; the run record shows the totals.
  void count(const std::string& name, int64_t times = 1) { counters_[name] += times; }

  const std::vector<StepRow>& steps() const { return steps_; }
  const std::vector<EvaluationRow>& evaluations() const { return evaluations_; }
  const std::map<std::string, int64_t>& counters() const { return counters_; }
  int64_t own_samples() const { return own_samples_; }
  // Returns the samples of all workers, as far as this node knows.
  int64_t samples() const;
  Freshness freshness() const;
  const Extra& extra() const { return extra_; }

 private:
  OnStep on_step_;
  OnEvaluation on_evaluation_;
  std::vector<StepRow> steps_;
  std::vector<EvaluationRow> evaluations_;
  std::map<std::string, int64_t> counters_;
  int64_t own_samples_ = 0;
  std::vector<int64_t> rounds_;  // of the updates, in the order they were applied
  double staleness_sum_ = 0, age_sum_s_ = 0;
  Freshness totals_;
  Extra extra_;
};

}  // namespace tutti
