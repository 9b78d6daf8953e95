// A worker: pulls parameters, computes gradients, pushes them, as the first server directs.
//
// Parameters arrive in a second buffer and are taken over as a whole at the border of a step, never
// under a pass that reads them; until then the ones before are still there, so that a step that a
// lost worker left incomplete can be completed.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "core/error.h"
#include "strategies/compute.h"
#include "strategies/local_worker.h"
#include "strategies/parameter_server/config.h"
#include "strategies/parameter_server/link.h"
#include "strategies/parameter_server/timetable.h"

namespace tutti::parameter_server {

class Worker : private LateParameters {
 public:
  Worker(Context& context, const Config& config);
  ~Worker() override = default;
  void run();

 protected:
  void train();
  void finish_training();
  void finish();
  virtual void take_final() {}  // what else there is to fetch before it says goodbye
  void say_goodbye();
  void leave();
  FabricError with_loss(const FabricError& error);  // and what remains

  // Asking and waiting.
  void ask(uint32_t flags, const EvaluationShare& share = {});
  Request pull_request(const Link& link, uint32_t flags) const;
  void await_replies();
  void await_replies(double timeout_s, bool headers_only = false);
  void await_version(int64_t version);
  void catch_up_with(int64_t version);
  void use(Link& link);
  void record_step();
  virtual void commit();

  // Parameters that come while the forward pass goes on (worker_late.cpp).
  void commit_late();
  bool has(Range range) override;
  void await(Range range) override;
  void ask_ahead();
  void take_arrived();
  void take(Link& link, size_t piece, const Completion& completion);

  // Computing.
  virtual void compute(const Hand& hand);
  void compute_and_push(const Hand& hand);
  void compute_and_accrue(const Hand& hand, bool push);
  void foresee_statistics(Range read);
  void step_alone(double rate, const LocalWorker::Result& result);
  void repeat(Link& link);
  void push_whole(Link& link, Request request, std::span<const float> gradients);
  void send_whole(Link& link, const Request& request, std::span<const float> gradients);
  void push_pieces(Range ready);
  void evaluate(const EvaluationTask& task, uint32_t flags);
  virtual void read_for(const EvaluationTask& task, uint32_t flags);
  void note_step(const LocalWorker::Result& result, double rate);
  LocalWorker::Place place_of(const Hand& hand) const {
    return {hand.epoch, hand.step, hand.part, hand.parts};
  }
  uint64_t number_of(const Hand& hand) const {
    return static_cast<uint64_t>(timetable_.number(hand.epoch, hand.step));
  }

  double occupancy();
  double elapsed_s() const { return context_.node.clock().now() - started_s_; }
  Link& coordinator() { return links_.front(); }

  Context& context_;
  const Config& config_;
  bool collects_;
  Timetable timetable_;
  LocalWorker local_;
  double started_s_;
  Buffer<float> incoming_;
  Buffer<float> accrued_;  // pull_every > 1: gradients that were not pushed yet
  Layout layout_;
  std::unique_ptr<Optimizer> optimizer_;  // pull_every > 1: for steps on its own copy
  Buffer<ExactSum> sums_;                 // task.deterministic
  Ring ring_;
  std::deque<Link> links_;                  // one for each shard
  std::vector<std::vector<Range>> pieces_;  // of each link's range
  uint32_t always_ = 0;                     // flags of every pull
  int64_t bound_ = 0;                       // as the coordinator said last
  int64_t forgiven_ = 0;                    // likewise
  int64_t steps_ = 0;                       // that this worker took
  int64_t accrued_steps_ = 0, accrued_samples_ = 0;
  Hand accrued_hand_;
  std::optional<StepRow> row_;  // of the step that is not complete before the next reply
  double busy_before_s_ = 0, asked_s_ = 0;
  bool began_ = false, finishes_ = false;
  const bool by_layers_;    // pulls them so
  size_t late_pieces_ = 0;  // that are still on their way
  double late_copied_ = 0;  // floats, not charged yet
  bool ahead_ = false;      // the next pull is asked for when the last of them is here
};

}  // namespace tutti::parameter_server
