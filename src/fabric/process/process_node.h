// A node as a process: what a freshly forked child, or one that joined, runs until it exits.
#pragma once

#include <string>
#include <vector>

#include "fabric/fabric.h"
#include "fabric/process/process_endpoint.h"

namespace tutti::process {

class ProcessNode : public Node {
 public:
  ProcessNode(Reactor& reactor, std::vector<std::string> roles, double timeout_s)
      : reactor_(reactor),
        endpoint_(reactor, std::move(roles)),
        clock_(reactor),
        timeout_s_(timeout_s) {}

  Endpoint& endpoint() override { return endpoint_; }
  Clock& clock() override { return clock_; }
  Membership& membership() override { return reactor_.membership(); }
  double timeout_s() const override { return timeout_s_; }

 private:
  Reactor& reactor_;
  ProcessEndpoint endpoint_;
  ProcessClock clock_;
  double timeout_s_;
};

// Runs the body, reports, and waits for the launcher's bye. Throws when there is no connection.
NodeOutcome take_part(const NodeSetup& setup, Board& board, ControlSocket control,
                      const Fabric::Body& body);

// The same in a forked child, which never returns.
[[noreturn]] void run_node(const NodeSetup& setup, Board& board, ControlSocket control,
                           const Fabric::Body& body);

}  // namespace tutti::process
