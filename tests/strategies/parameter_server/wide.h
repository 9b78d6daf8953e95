// A model whose parameters take long to travel, for tests of when they are waited for.
#pragma once

#include <algorithm>

#include "strategies/parameter_server/layout.h"
#include "tests/strategies/parameter_server/runs.h"

namespace tutti::testing_support {

// Three layers of a mebibyte each and a small one.
inline Settings wide_task(int workers) {
  return {"task.data={kind=\"synthetic-classes\", samples=400, features=512, classes=10, test=0}",
          "task.model={kind=\"mlp\", hidden=[512, 512, 512]}",
          "task.global_batch=" + std::to_string(32 * workers),
          "task.max_steps=6",
          "task.eval_every=100",
          "optimizer.kind=sgd",
          "optimizer.lr=0.1",
          "cluster.timeout=60"};
}

inline Settings slow_network(int workers) {
  return {"cluster.step_overhead=0",     "cluster.layer_overhead=0",
          "cluster.fabric=virtual",      "cluster.workers=" + std::to_string(workers),
          "cluster.speed=\"2 GFLOP/s\"", "cluster.bandwidth=\"1 Gbit/s\"",
          "cluster.latency=\"1 us\"",    "cluster.memory_bandwidth=\"10000 GB/s\""};
}

inline Settings pull(const std::string& how) { return {"strategy.pull=" + how}; }

inline double time_s(const Settings& settings) {
  const RunRecord record = run(settings);
  EXPECT_EQ(record.status, RunStatus::kDone) << record.error;
  return record.nodes.front().total_s;
}

// What a forward pass saves that begins when the first layer's parameters are there, with one
// worker and one server: piece k arrives when all up to it have crossed the wire, and layer k
// begins when it has arrived and layer k - 1 has ended.
inline double overlap_saves_s(const Settings& settings) {
  const Architecture architecture = resolve(load_job("", settings)).architecture;
  const double bytes_per_s = 1e9 / 8 * 0.957, flops_per_s = 2e9, samples = 32;
  const auto pieces =
      parameter_server::forward_pieces_of(architecture, {0, architecture.parameter_count});
  EXPECT_EQ(pieces.size(), 3u);
  double arrived_s = 0, forward_s = 0, compute_s = 0;
  size_t piece = 0;
  for (const Layer& layer : architecture.layers) {
    const double layer_s = samples * layer.flops / flops_per_s;
    if (!layer.parameters.empty()) {
      const size_t last = architecture.parameters[layer.parameters.back()].range.end;
      for (; piece < pieces.size() && pieces[piece].begin < last; ++piece)
        arrived_s += 4 * static_cast<double>(pieces[piece].size()) / bytes_per_s;
      forward_s = std::max(forward_s, arrived_s);
    }
    forward_s += layer_s;
    compute_s += layer_s;
  }
  const double saved_s = arrived_s + compute_s - forward_s;
  EXPECT_GT(saved_s, 0.3 * arrived_s);  // or there is nothing to see
  return saved_s;
}

}  // namespace tutti::testing_support
