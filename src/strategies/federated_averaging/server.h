// The server: draws clients, deals them to workers, averages what comes back, has quality measured.
//
// Rounds are blocking code over one loop that waits for the next message of anybody. A worker has
// the next client as soon as it is free. The client of one that is expelled or lost goes to
// somebody else, and so does its share of an evaluation.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "strategies/federated_averaging/aggregation.h"
#include "strategies/federated_averaging/control_variates.h"
#include "strategies/federated_averaging/messages.h"
#include "strategies/federated_averaging/round.h"
#include "strategies/federated_averaging/sampling.h"
#include "strategies/federated_averaging/workforce.h"
#include "strategies/shared_evaluation.h"
#include "strategies/strategy.h"
#include "strategies/training_progress.h"

namespace tutti::federated_averaging {

// All that is kept of an idle client, besides its samples.
struct ClientRecord {
  int64_t steps = 0;  // that it has taken
};
static_assert(sizeof(ClientRecord) < 1024);

class Server : private Workforce::Listener {
 public:
  Server(Context& context, const Config& config);
  ~Server() override = default;
  void run();

 private:
  // Rounds.
  bool over() const;
  void play_round();
  void update_control(int64_t client, std::span<const float> control);
  Round draw_round();
  void deal(Round& round);
  void close(Round& round);
  void update();
  void measure();
  void finish_all();
  void end_diverged();

  // What workers say.
  void on_update(const Workforce::Work& work, const Report& report, size_t slot) override;
  void on_dropped(const Workforce::Work& work, const Report& report) override;
  bool on_evaluated(Rank from, const EvaluationShare& share) override;
  void on_diverged() override { diverged_ = true; }
  void on_gone(Rank rank, const Workforce::Work& work) override;

  void charge_sum(size_t updates);
  double now_s() const { return node_.clock().now(); }
  double elapsed_s() const { return now_s() - started_s_; }
  void count_samples(int64_t samples);

  Context& context_;
  Node& node_;
  const Config& config_;
  ClientSplit split_;
  std::vector<ClientRecord> records_;
  Sampling sampling_;
  Schedule schedule_;
  Workforce::Parameters parameters_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<ControlVariates> controls_;  // scaffold
  Aggregation aggregation_;
  Evaluator evaluator_;
  Workforce workers_;
  Round* round_ = nullptr;                  // under way
  int64_t number_ = -1;                     // of the last round that was drawn
  TrainingProgress progress_;               // its steps are rounds that are complete
  double loss_sum_ = 0, loss_samples_ = 0;  // of the answers of this round
  double rate_ = 0;                         // of this round
  double started_s_;
  bool diverged_ = false;
};

}  // namespace tutti::federated_averaging
