#include "fabric/process/process_node.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>

#include "fabric/outcome.h"

namespace tutti::process {

NodeOutcome take_part(const NodeSetup& setup, Board& board, ControlSocket control,
                      const Fabric::Body& body) {
  prctl(PR_SET_NAME, fmt::format("tutti-{}", setup.rank).c_str());
  // Never deleted: the system takes everything back faster than UCX does.
  static Reactor* reactor;
  reactor = new Reactor(setup, board, std::move(control));
  ProcessNode node(*reactor, *setup.roles, setup.timeout_s);
  const Fabric::Body ready_body = [&](Node& ready) {
    reactor->get_ready(setup.timeout_s);
    return body(ready);
  };
  NodeOutcome outcome = run_body(ready_body, node);
  NodeOutcome reported = outcome;
  if (setup.stop && setup.stop->load() && outcome.kind == NodeOutcome::Kind::kInterrupted) {
    // Interrupted by its own user, not by the launcher's: to everybody else it is gone.
    reported.kind = NodeOutcome::Kind::kLost;
    reported.exit_code = kExitPeerLost;
    reported.error = fmt::format("rank {} was interrupted where it runs", setup.rank);
  }
  // Output belongs to the body: it must be out before the launcher hears that it has ended.
  std::fflush(nullptr);
  reactor->report(reported);
  return outcome;
}

void run_node(const NodeSetup& setup, Board& board, ControlSocket control,
              const Fabric::Body& body) {
  try {
    take_part(setup, board, std::move(control), body);
    _exit(0);
  } catch (const std::exception& error) {
    // Without a working connection to the launcher there is nobody else to tell.
    std::fprintf(stderr, "tutti: node %d: %s\n", setup.rank, error.what());
  }
  std::fflush(nullptr);
  // No destructors: they belong to the launcher, whose copy of this memory the child only borrowed.
  _exit(1);
}

}  // namespace tutti::process
