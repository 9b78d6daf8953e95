// The process fabric: nodes are processes of this machine, forked by the caller of run(), and
// messages travel by UCX over shared memory.
//
// Loss of a node is what the launcher sees through its pidfd. Nodes die with the launcher, and no
// process, shared memory or file remains, whoever is killed.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fabric/fabric.h"

namespace tutti {

struct ProcessOptions {
  int restarts = 0;  // how often a lost node is started again, each
  // Asked before a restart, in the launcher; without it, yes.
  std::function<bool(Rank)> may_restart;
  double timeout_s = 120;  // Node::timeout_s(), and how long starting up may take
  // Receivers read large messages out of the sender's memory. Where the system forbids that, as
  // some containers do, they notice, and UCX copies; false: they do not even try.
  bool fetch = true;
  double stop_s = 10;  // a node that does not react to a stop is killed after this long
};

// One node per role, ranks in that order. run() forks: the caller must have one thread only, apart
// from idle ones of libraries that were told not to use them.
std::unique_ptr<Fabric> make_process_fabric(std::vector<std::string> roles,
                                            const ProcessOptions& options = {});

}  // namespace tutti
