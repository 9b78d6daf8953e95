// Keeps nodes that wait for each other on different cores, when there are enough of them.
//
// Nodes that yield look idle to the scheduler, which then lets two of them share a core while
// another one is free: each message costs two context switches, ten times its price. Pinning would
// cure that but harm everything else on the machine, so a waiting node that finds itself on a
// peer's core only steps aside, once, and stays free to be moved.
#pragma once

#include <sched.h>

#include <cstdint>

#include "fabric/process/board.h"

namespace tutti::process {

class Placement {
 public:
  Placement(Board& board, Rank rank);
  // How many cores this process may use.
  int cores() const { return cores_; }
  // Called while waiting; cheap, and acts at most once in a while.
  void consider(int64_t now_ns);

 private:
  Board& board_;
  Rank rank_;
  cpu_set_t allowed_{};
  int cores_ = 1;
  int64_t next_ns_ = 0;
};

}  // namespace tutti::process
