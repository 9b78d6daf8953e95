// The process fabric: nodes are processes of this machine, forked by the caller of run(), or of any
// machine, who join it; messages travel by UCX, over shared memory and over TCP between hosts.
//
// Loss of a node is what the launcher sees through its pidfd, or through its connection. Nodes die
// with the launcher, and no process, shared memory or file remains, whoever is killed.
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

  int remote = 0;       // so many ranks are not forked: they join
  int remote_end = -1;  // the rank after the last of them; -1: they are the last of all
  std::string listen = "127.0.0.1:0";  // where the launcher waits for them; port 0: a free one
  double join_timeout_s = 60;          // how long
  std::string briefing;                // what they are told, for the caller of join_process_fabric
  // Called when the launcher waits: where to dial, and the token to show.
  std::function<void(const std::string& address, const std::string& token)> invite;
  // Called for each that has joined: its rank and where it comes from.
  std::function<void(Rank, const std::string& origin)> welcome;
};

// One node per role, ranks in that order. run() forks: the caller must have one thread only, apart
// from idle ones of libraries that were told not to use them.
std::unique_ptr<Fabric> make_process_fabric(std::vector<std::string> roles,
                                            const ProcessOptions& options = {});

struct JoinOptions {
  std::string address;  // of the launcher, host:port
  std::string token;
  double timeout_s = 30;  // to be let in
};

// What a node is told that has been let in.
struct Joined {
  Rank rank = 0;
  int nodes = 0;
  std::string briefing;
};

// Takes part in a run that waits for nodes at `options.address`. Throws FabricError when it is not
// let in. Afterwards it does not return: `prepare` makes the body (what it throws is told to the
// launcher), the body runs, `leave` hears how it ended, and the process exits with that outcome's
// code; or, when the launcher is gone, at once. Raising `stop` makes the node leave the run.
[[noreturn]] void join_process_fabric(const JoinOptions& options,
                                      const std::function<Fabric::Body(const Joined&)>& prepare,
                                      const std::function<void(const NodeOutcome&)>& leave,
                                      const std::atomic<bool>& stop);

}  // namespace tutti
