// Who takes part in a round: a random subset of the clients that are online.
//
// Pure functions of seed, round and client, so that a run replays and a lost worker's client
// behaves on the next worker as it did on the first.
#pragma once

#include <cstdint>
#include <vector>

#include "strategies/federated_averaging/config.h"

namespace tutti::federated_averaging {

class Sampling {
 public:
  Sampling(const Config& config, int64_t clients, uint64_t seed)
      : config_(config), clients_(clients), seed_(seed) {}

  bool online(int64_t round, int64_t client) const;
  // The clients of a round, in the order they were drawn: at most as many as are asked, fewer when
  // fewer are online, possibly none.
  std::vector<int64_t> draw(int64_t round) const;
  // How much of its work a client does before it is gone; 1: it stays.
  double stamina(int64_t round, int64_t client) const;

 private:
  const Config& config_;
  int64_t clients_;
  uint64_t seed_;
};

}  // namespace tutti::federated_averaging
