// A worker: pulls parameters, computes gradients, pushes them, as the first server directs.
//
// Parameters arrive in a second buffer and are taken over as a whole at the border of a step, never
// under a pass that reads them; until then the ones before are still there, so that a step that a
// lost worker left incomplete can be completed.
#pragma once

#include <optional>

#include "strategies/gradient_sum.h"
#include "strategies/local_worker.h"
#include "strategies/parameter_server/accrued_gradients.h"
#include "strategies/parameter_server/config.h"
#include "strategies/parameter_server/gradient_pushes.h"
#include "strategies/parameter_server/late_pulls.h"
#include "strategies/parameter_server/occupancy.h"
#include "strategies/parameter_server/pull_terms.h"
#include "strategies/parameter_server/server_links.h"
#include "strategies/parameter_server/step_rows.h"
#include "strategies/timetable.h"

namespace tutti::parameter_server {

inline LocalWorker::Place place_of(const Hand& hand) {
  return {hand.epoch, hand.step, hand.part, hand.parts};
}

class Worker {
 public:
  Worker(Context& context, const Config& config);
  virtual ~Worker() = default;
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  void run();

 protected:
  // What workers of sparse models do in their own way: parameters that came with replies, a step,
  // what an evaluation is measured on, and what is fetched before the goodbye.
  virtual void commit();
  virtual void compute(const Hand& hand);
  virtual void read_for(const EvaluationTask& task, uint32_t flags);
  virtual void take_final() {}

  Request push_request(const Link& link, uint32_t flags) const;
  void use(Link& link);
  Link& coordinator() { return links_.coordinator(); }
  uint64_t number_of(const Hand& hand) const {
    return static_cast<uint64_t>(timetable_.number(hand.epoch, hand.step));
  }

  Context& context_;
  const Config& config_;
  Timetable timetable_;
  LocalWorker local_;
  PullTerms terms_;
  AccruedGradients accrued_;
  Occupancy occupancy_;
  StepRows rows_;

 private:
  void train();
  void finish_training();
  void finish();
  FabricError with_loss(const FabricError& error);  // and what remains

  void ask(uint32_t flags, const EvaluationShare& share = {});
  void await_version(int64_t version);
  void catch_up_with(int64_t version);
  void commit_late();
  void compute_and_push(const Hand& hand);
  void compute_and_accrue(const Hand& hand, bool push);
  void repeat(Link& link);
  void evaluate(const EvaluationTask& task, uint32_t flags);

  // Links send from these and receive into them, so they go after the links.
  Buffer<float> incoming_;
  std::optional<GradientSum> sum_;  // task.deterministic

 protected:
  ServerLinks links_;

 private:
  GradientPushes pushes_;
  LatePulls late_;
  bool finishes_ = false;
};

}  // namespace tutti::parameter_server
