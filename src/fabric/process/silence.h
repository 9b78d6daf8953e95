// Finds nodes that neither die nor say anything: a process that was stopped, or a guest that went
// silent. Peers give up at their own deadlines, and without this check the launcher would wait for
// ever.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fabric/process/board.h"
#include "fabric/process/child.h"

namespace tutti::process {

class SilenceCheck {
 public:
  SilenceCheck(Board& board, double timeout_s) : board_(board), timeout_s_(timeout_s) {}

  // Some node waited in vain until its deadline.
  void note_given_up() { gave_up_ = true; }
  struct Silent {
    Rank rank;
    std::string why;
  };
  // Looks at the time `now_ns`, in a run that has started. Each silent node is found once.
  std::vector<Silent> look(Children& children, int64_t now_ns);

 private:
  std::string last_step(const Child& child, Rank rank) const;

  Board& board_;
  double timeout_s_;
  int64_t looked_ns_ = 0;
  bool gave_up_ = false;
};

}  // namespace tutti::process
