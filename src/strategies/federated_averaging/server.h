// The server: draws clients, deals them to workers, averages what comes back, has quality measured.
//
// Rounds are blocking code over one loop that waits for the next message of anybody. A worker has
// one order at a time and the next client as soon as it is free. One that sends nonsense is
// expelled and one that is lost is gone; its client goes to somebody else.
#pragma once

#include <deque>
#include <initializer_list>
#include <memory>
#include <optional>
#include <vector>

#include "strategies/federated_averaging/aggregation.h"
#include "strategies/federated_averaging/control_variates.h"
#include "strategies/federated_averaging/messages.h"
#include "strategies/federated_averaging/round.h"
#include "strategies/federated_averaging/sampling.h"
#include "strategies/shared_evaluation.h"
#include "strategies/strategy.h"
#include "strategies/training_progress.h"

namespace tutti::federated_averaging {

// All that is kept of an idle client, besides its samples.
struct ClientRecord {
  int64_t steps = 0;  // that it has taken
};
static_assert(sizeof(ClientRecord) < 1024);

class Server {
 public:
  Server(Context& context, const Config& config);
  void run();

 private:
  using Parameters = std::shared_ptr<Buffer<float>>;
  // An order that is on its way, with what follows it.
  struct Sent {
    Order order;
    Parameters parameters;  // as they were: the next round may begin while they travel
    Buffer<float> correction;
    std::vector<Handle> handles;
  };
  struct Worker {
    enum State { kAbsent, kIdle, kBusy, kDone, kGone } state = kAbsent;
    uint64_t sequence = 0;
    Order order;    // that it works on
    Report report;  // whose update is on its way
    double ordered_s = 0;
    std::optional<size_t> place;  // in the round under way, if it works for that
    std::optional<size_t> slot;   // where its update arrives
    size_t parts_left = 0;
    std::deque<Sent> sent;
  };

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

  // Messages.
  void wait_for_news(double until_s);
  void look_at_members();
  void receive_report();
  void handle(Rank from, const Report& report, size_t bytes);
  void receive_update(Rank from);
  void part_arrived(size_t index, const Completion& completion);
  void update_arrived(Rank from);
  void order(Rank to, Order order, bool with_parameters, Buffer<float> correction = {});
  void expel(Rank rank, const std::string& why);
  void remove(Rank rank);

  Worker& worker(Rank rank) { return workers_[static_cast<size_t>(rank)]; }
  size_t count_present() const;
  std::vector<Rank> idle() const;
  bool any(std::initializer_list<Worker::State> states) const;
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
  Parameters parameters_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<ControlVariates> controls_;  // scaffold
  Aggregation aggregation_;
  Evaluator evaluator_;
  std::vector<Worker> workers_;
  Round* round_ = nullptr;                  // under way
  int64_t number_ = -1;                     // of the last round that was drawn
  TrainingProgress progress_;               // its steps are rounds that are complete
  double loss_sum_ = 0, loss_samples_ = 0;  // of the answers of this round
  double rate_ = 0;                         // of this round
  double started_s_;
  double silent_s_ = 0;  // time waited for anybody; a clock would also count time while stopped
  bool diverged_ = false;
  Report incoming_;
  std::vector<Handle> handles_;  // the receive from anybody, then parts of updates
  std::vector<Rank> owner_of_;   // of the same index
};

}  // namespace tutti::federated_averaging
