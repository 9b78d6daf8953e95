#include "fabric/process/process_node.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>

#include "fabric/outcome.h"

namespace tutti::process {

void run_node(const NodeSetup& setup, Board& board, ControlSocket control,
              const Fabric::Body& body) {
  try {
    prctl(PR_SET_NAME, fmt::format("tutti-{}", setup.rank).c_str());
    Reactor reactor(board, std::move(control), setup.rank, setup.incarnation);
    ProcessNode node(reactor, *setup.roles, setup.timeout_s);
    const Fabric::Body ready_body = [&](Node& ready) {
      reactor.get_ready(setup.timeout_s);
      return body(ready);
    };
    const NodeOutcome outcome = run_body(ready_body, node);
    // Output belongs to the body: it must be out before the launcher hears that it has ended.
    std::fflush(nullptr);
    reactor.report(outcome);
    // The system takes everything back faster than UCX does, and there is nobody to tell.
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
