// Shared by the tests of the virtual fabric: a cluster with round figures.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>
#include <source_location>
#include <string>
#include <vector>

#include "core/error.h"
#include "fabric/exchange.h"
#include "fabric/virtual/virtual_fabric.h"

namespace tutti {

inline constexpr double kTcpShare = 0.957;  // of the bandwidth; see platform.cpp
inline constexpr double kForever = std::numeric_limits<double>::infinity();

// A program may take the same tests with another solver.
#ifndef TUTTI_TEST_SOLVER
#define TUTTI_TEST_SOLVER kSimgrid
#endif

inline ClusterConfig virtual_cluster(int64_t workers) {
  ClusterConfig config;
  config.fabric = FabricKind::kVirtual;
  config.workers = workers;
  config.bandwidth = 1e8;
  config.latency_s = 1e-3;
  config.speed_flops = 1e9;
  config.memory_bandwidth = 1e10;
  config.network_solver = NetworkSolver::TUTTI_TEST_SOLVER;
  return config;
}

struct VirtualRun {
  std::vector<NodeOutcome> outcomes;
  ClusterEnergy energy;
  double joules = 0;
  const std::string& result(size_t rank) const {
    EXPECT_EQ(outcomes.at(rank).kind, NodeOutcome::Kind::kDone) << outcomes.at(rank).error;
    return outcomes.at(rank).result;
  }
  double number(size_t rank) const { return std::stod(result(rank)); }
};

// `others` nodes take part besides the workers.
inline VirtualRun simulate(const ClusterConfig& config, const Fabric::Body& body, uint64_t seed = 1,
                           size_t others = 0) {
  const std::atomic<bool> stop{false};
  std::vector<std::string> roles(static_cast<size_t>(config.workers), "worker");
  roles.insert(roles.end(), others, "server");
  const auto fabric = make_virtual_fabric(config, roles, seed);
  VirtualRun run;
  run.outcomes = fabric->run(body, stop);
  run.energy = fabric->figures().energy;
  run.joules = run.energy.total();
  return run;
}

// An expectation within a body. That runs in another process, whose EXPECT_... nobody would see.
inline void in_body(bool condition,
                    const std::source_location& where = std::source_location::current()) {
  if (!condition) throw Error(fmt::format("the expectation in line {} failed", where.line()));
}

// All digits, so that equal texts mean equal times.
inline std::string exact(double value) { return fmt::format("{:.17g}", value); }

inline std::string time_now(Node& node) { return exact(node.clock().now()); }

}  // namespace tutti
