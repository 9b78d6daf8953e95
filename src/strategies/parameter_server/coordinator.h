// What the first server does besides holding its shard: it deals the samples, has quality measured,
// and decides when training ends.
#pragma once

#include "strategies/parameter_server/consistency.h"
#include "strategies/parameter_server/dealer.h"
#include "strategies/parameter_server/turn.h"
#include "strategies/shared_evaluation.h"
#include "strategies/training_progress.h"

namespace tutti::parameter_server {

class Coordinator {
 public:
  // All of these have to outlive it.
  Coordinator(const StateSettings& settings, const Consistency& consistency,
              const Timetable& timetable);

  // A gradient of `worker` became part of an update, or was left out of it.
  void applied(int worker, const Request& push);
  void dropped(int worker, const Request& push);
  // An update is complete: the parameters have `version` of them. True when quality is to be
  // measured on a snapshot of them.
  bool updated(Turn& turn, int64_t version, const std::vector<int>& present);
  // False: it was not asked to. Throws DivergedError.
  bool evaluated(Turn& turn, int worker, const EvaluationShare& share);
  void lose(int worker);

  // What the worker is to do next; false: it has to wait. A newcomer came back and has not pushed
  // anything yet.
  bool direct(Turn& turn, int worker, bool final, bool newcomer, const std::vector<int>& present,
              Reply& reply);

  // How far training has come, for a snapshot that is taken before updated().
  std::vector<int64_t> save() const;
  bool restore(int64_t version, std::span<const int64_t> saved);
  void archive(Archive& archive);  // everything, for a replica

  int64_t evaluation() const { return evaluator_.id(); }
  int64_t samples() const { return progress_.samples; }
  int64_t step(int64_t version) const;  // of the run, after this many updates
  size_t left_in_epoch() const { return dealer_.left(); }

 private:
  void begin_evaluation(Turn& turn, bool blocking, size_t workers);
  void finish_evaluation(Turn& turn);
  bool next_hand(int worker, Reply& reply);

  const StateSettings& settings_;
  const Consistency& consistency_;
  const Timetable& timetable_;
  Dealer dealer_;
  Evaluator evaluator_;
  double started_s_;
  TrainingProgress progress_;  // its steps are global batches
  int64_t version_ = 0, measured_version_ = -1;
  bool begun_ = false, resumed_ = false;
  bool finished_ = false;  // nobody gets another hand
  bool final_measured_ = false;
};

}  // namespace tutti::parameter_server
