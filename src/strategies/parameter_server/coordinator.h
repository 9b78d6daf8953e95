// What the first server does besides holding its shard: it deals the samples, has quality measured,
// and decides when training ends.
#pragma once

#include <deque>

#include "strategies/parameter_server/consistency.h"
#include "strategies/parameter_server/dealer.h"
#include "strategies/parameter_server/evaluator.h"
#include "strategies/strategy.h"

namespace tutti::parameter_server {

class Coordinator {
 public:
  Coordinator(Context& context, const Config& config, const Consistency& consistency,
              const Timetable& timetable);

  // A gradient of `worker` became part of an update, or was left out of it.
  void applied(int worker, const Request& push);
  void dropped(int worker, const Request& push);
  // An update is complete: the parameters have `version` of them. True when quality is to be
  // measured on a snapshot of them.
  bool updated(int64_t version, const std::vector<int>& present);
  bool evaluated(int worker, const EvaluationShare& share);  // false: it was not asked to
  void lose(int worker);

  // What the worker is to do next; false: it has to wait. A newcomer came back and has not pushed
  // anything yet.
  bool direct(int worker, bool final, bool newcomer, const std::vector<int>& present, Reply& reply);

  // How far training has come, for a snapshot that is taken before updated().
  std::vector<int64_t> save() const;
  bool restore(int64_t version, std::span<const int64_t> saved);
  void archive(Archive& archive);  // everything, for a replica

  int64_t evaluation() const { return evaluator_.id(); }
  int64_t samples() const { return samples_; }
  int64_t step(int64_t version) const;  // of the run, after this many updates
  size_t left_in_epoch() const { return dealer_.left(); }

 private:
  void begin_evaluation(bool blocking, size_t workers);
  void finish_evaluation();
  bool next_hand(int worker, Reply& reply);
  double elapsed_s() const { return context_.node.clock().now() - started_s_; }

  Context& context_;
  const Consistency& consistency_;
  const Timetable& timetable_;
  const int64_t pull_every_;
  Dealer dealer_;
  Evaluator evaluator_;
  std::deque<EvaluationRow> rows_;  // that rank 0 has not been told of
  double started_s_;
  double progress_ = 0;  // epochs
  double steps_ = 0;     // global batches
  double next_evaluation_;
  int64_t version_ = 0, measured_version_ = -1;
  int64_t samples_ = 0;
  bool begun_ = false, resumed_ = false;
  bool finished_ = false;  // nobody gets another hand
  bool final_measured_ = false;
};

}  // namespace tutti::parameter_server
