// What a client does in a round: local steps on its own samples, from the server's parameters.
//
//  FedAvg    McMahan et al., "Communication-efficient learning of deep networks from decentralized
//            data", AISTATS 2017
//  FedProx   Li et al., "Federated optimization in heterogeneous networks", MLSys 2020
//  SCAFFOLD  Karimireddy et al., "SCAFFOLD: stochastic controlled averaging for federated
//            learning", ICML 2020, option II
//
// The optimizer starts afresh in every round: a client keeps nothing but its samples. How many
// steps it has taken before comes with the order, so that it goes on in its data where it was.
#pragma once

#include <span>

#include "core/bytes.h"
#include "strategies/federated_averaging/config.h"
#include "strategies/strategy.h"

namespace tutti::federated_averaging {

// The steps of one client: batches of its samples in an order that is drawn anew for each pass.
class ClientBatches {
 public:
  // `shuffled`: false where only sizes count.
  ClientBatches(std::span<const uint32_t> samples, int64_t batch, int64_t client, uint64_t seed,
                bool shuffled);
  int64_t steps_per_epoch() const;
  std::span<const uint32_t> at(int64_t step);  // of all the steps it takes in the whole run

 private:
  std::span<const uint32_t> samples_;
  size_t batch_;
  uint32_t client_;
  uint64_t seed_;
  bool shuffled_;
  int64_t epoch_ = -1;
  std::vector<uint32_t> order_;
};

// How many steps a client with so many samples takes in a round.
int64_t steps_in_round(const Config& config, size_t samples, int64_t batch);

class ClientTraining {
 public:
  ClientTraining(Context& context, const Config& config, const ClientSplit& split);

  struct Task {
    int64_t round = 0, client = 0, steps_before = 0;
    double rate = 0;
    double stamina = 1;  // the share of its work after which it is gone
  };
  struct Result {
    int64_t steps = 0, samples = 0;
    double loss = 0;        // mean over the samples
    bool completed = true;  // false: it is gone, and there is no update
  };
  // From `start` on; `correction` is SCAFFOLD's c - c_i, or empty. Leaves the client's parameters
  // in the model. Throws DivergedError.
  Result train(const Task& task, std::span<const float> start, std::span<const float> correction);

 private:
  double step(std::span<const uint32_t> samples, uint64_t number);
  void correct(std::span<const float> start, std::span<const float> correction);

  Context& context_;
  const Config& config_;
  const ClientSplit& split_;
  std::vector<Range> trained_;
  int64_t batch_size_;
  Batch batch_;
};

// The client's new control variate (option II), from what it did: c_i - c + (start - end) / (K lr).
void new_control_variate(std::span<const float> correction, std::span<const float> difference,
                         double step_length, std::span<float> control);

}  // namespace tutti::federated_averaging
