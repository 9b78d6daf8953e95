// Bytes on the wires: transfers between nodes whose duration the network model decides.
//
// No actor waits for a transfer. The network says when the next one will have ended, and the world
// is told to look then; that is what lets hundreds of thousands of messages simulate in seconds.
//
// A cut (dead link or partition) stops the transfers that cross it. They keep what has been carried
// already, as TCP would, and go on when it heals.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "fabric/tag.h"
#include "fabric/virtual/agenda.h"
#include "fabric/virtual/platform.h"

namespace tutti::simulation {

class Transfers {
 public:
  // True when the network between two nodes is cut.
  using Separates = std::function<bool(Rank, Rank)>;

  // `changed` is called when there is something to start or to collect, from any context.
  Transfers(Platform& platform, Agenda& agenda, std::function<void()> changed);

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
    double bytes;        // left to carry when it started last
    bool flows = false;  // or waits to start, or for a cut to heal, or to be collected
    bool ended = false;
  };
  void begin(uint64_t id, Transfer& transfer);
  void wake_in_time();

  Platform& platform_;
  Agenda& agenda_;
  std::function<void()> changed_;
  std::map<uint64_t, Transfer> transfers_;
  std::vector<uint64_t> to_start_;
  std::vector<uint64_t> finished_;
  std::map<uint64_t, Separates> cuts_;
  uint64_t next_cut_ = 1;
  uint64_t alarm_ = 0;  // on the agenda; 0: none
  double alarm_s_ = 0;
};

}  // namespace tutti::simulation
