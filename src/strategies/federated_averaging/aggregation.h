// The weighted average of the clients' differences, in the order in which clients were drawn: the
// same bits whichever worker did which client, and whoever was first.
//
// An update is added as soon as those before it are settled, so that only the ones that came too
// early take memory. Sums are in double.
//
//  fedavg            weight n_i, the samples of the client
//  scaffold          weight 1, as in the paper, or n_i (strategy.weigh_by)
//  fednova           weight n_i / a_i, where a_i says how far its steps reach; then times the mean
//                    of a_i (Wang et al., "Tackling the objective inconsistency problem in
//                    heterogeneous federated optimization", NeurIPS 2020)
//
// Running statistics take no steps that could be too many: their weight is always n_i.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/arithmetic.h"
#include "core/bytes.h"
#include "optimizers/optimizer.h"
#include "strategies/federated_averaging/config.h"

namespace tutti::federated_averaging {

// The weight of an update: its factor in the sum, and what it adds to the divisors.
struct Weight {
  double factor = 0;   // w_i, or w_i / a_i
  double samples = 0;  // n_i
  double reach = 0;    // w_i a_i; a_i is 1 except for fednova
  double mass = 0;     // w_i: n_i, or 1 if clients count alike
};

// The length of `steps` local steps in units of the rate: the norm |a_i|_1 of FedNova. Momentum rho
// makes a gradient act on all later steps too.
double reach_of(const OptimizerConfig& optimizer, int64_t steps);
Weight weight_of(const Config& config, const OptimizerConfig& optimizer, int64_t samples,
                 int64_t steps);

class Aggregation {
 public:
  // Called with each update that is added, in order: the client's place, and what it sent besides
  // its difference.
  using Added = std::function<void(size_t place, std::span<const float> more)>;
  // Updates of `vectors` vectors of `size` values, the first of which is averaged.
  Aggregation(size_t size, size_t vectors, Arithmetic arithmetic, Added added,
              std::vector<Range> statistics = {})
      : size_(size),
        vectors_(vectors),
        arithmetic_(arithmetic),
        on_added_(std::move(added)),
        statistics_(std::move(statistics)),
        sum_(size) {}

  // A round of so many clients, none of which is settled.
  void begin(size_t clients);
  // A place for an update to arrive in; it stays until the update was added or given back.
  size_t take_slot();
  void give_back(size_t slot) { free_.push_back(slot); }
  std::span<float> slot(size_t slot) { return slots_[slot].span(); }
  size_t slots() const { return slots_.size(); }

  // The client in place `place` of the round has answered, or will not. Returns how many updates
  // were added now.
  size_t add(size_t place, size_t slot, const Weight& weight);
  size_t leave_out(size_t place);
  // All that has arrived is added, whatever is missing.
  size_t close();

  size_t added() const { return added_; }
  // The average difference, into `mean`; false when there is none, or when it is not finite.
  bool mean(std::span<float> mean) const;

 private:
  struct Place {
    enum { kOpen, kArrived, kSettled } state = kOpen;
    size_t slot = 0;
    Weight weight;
  };
  size_t advance();
  void accumulate(size_t index);

  size_t size_, vectors_;
  Arithmetic arithmetic_;
  Added on_added_;
  std::vector<Range> statistics_;
  Buffer<double> sum_;
  std::vector<Place> places_;
  size_t next_ = 0;  // the first place that is not settled
  size_t added_ = 0;
  Weight total_;
  std::vector<Buffer<float>> slots_;
  std::vector<size_t> free_;
};

}  // namespace tutti::federated_averaging
