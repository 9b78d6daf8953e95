// Bytes on the wires: transfers between nodes whose duration the network model decides.
//
// A cut (dead link or partition) stops the transfers that cross it. They keep what has been carried
// already, as TCP would, and go on when it heals.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "fabric/tag.h"
#include "fabric/virtual/flows.h"

namespace tutti::simulation {

class Transfers {
 public:
  // True when the network between two nodes is cut.
  using Separates = std::function<bool(Rank, Rank)>;

  // `changed` is called when there is something to start or to collect, from any context.
  Transfers(std::unique_ptr<Flows> flows, Changed changed);

  // `id` is the caller's, unused until now or since it was collected.
  void start(uint64_t id, Rank from, Rank to, size_t bytes);
  void cancel(uint64_t id);

  // Starts what was asked for. Like all that follow, in the simulator's own context.
  void flush();
  std::vector<uint64_t> collect();  // finished since the last call, in order
  bool idle() const;                // nothing can finish unless a cut heals

  uint64_t cut(Separates separates);
  void heal(uint64_t cut);
  bool reachable(Rank a, Rank b) const;

 private:
  struct Transfer {
    Rank from;
    Rank to;
    double bytes;          // left to carry
    bool flowing = false;  // or it has ended; else it waits to start or for a cut to heal
  };

  std::unique_ptr<Flows> flows_;
  Changed changed_;
  std::map<uint64_t, Transfer> transfers_;
  std::vector<uint64_t> to_start_;
  std::map<uint64_t, Separates> cuts_;
  uint64_t next_cut_ = 1;
};

}  // namespace tutti::simulation
