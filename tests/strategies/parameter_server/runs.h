// Runs of the parameter server for tests: small jobs, nodes of which some behave otherwise.
#pragma once

#include <functional>
#include <optional>

#include "fabric/outcome.h"
#include "jobs/participant.h"
#include "jobs/plugins.h"
#include "jobs/record_book.h"
#include "tests/support/jobs.h"

namespace tutti::testing_support {

inline Settings servers(int count, const std::string& consistency) {
  return {"strategy.kind=parameter_server", "strategy.servers=" + std::to_string(count),
          "strategy.consistency=" + consistency};
}

inline Settings cluster(const std::string& fabric, int workers) {
  Settings settings = {"cluster.fabric=" + fabric, "cluster.workers=" + std::to_string(workers)};
  if (fabric == "virtual")
    for (const char* own :
         {"cluster.speed=\"10 MFLOP/s\"", "cluster.step_overhead=0", "cluster.layer_overhead=0"})
      settings.push_back(own);
  return settings;
}

inline RunRecord run_job(Job& job) {
  const std::atomic<bool> never{false};
  return launch(job, {.out = "", .keep_files = false, .progress = ProgressStyle::kNone}, never);
}

// Every node takes part in the job, but for those that `instead` has something else to do for.
using Instead = std::function<std::optional<std::string>(Node&)>;
inline std::vector<NodeOutcome> run_nodes(Job& job, const Instead& instead,
                                          const std::string& folder = "") {
  const Resolved resolved = resolve(job);
  RecordBook book;
  const Stage stage{.resolved = resolved,
                    .models = load_models(resolved.architecture, 1),
                    .folder = folder,
                    .book = &book};
  const auto fabric = make_fabric(job.cluster, resolved.plan.roles(), job.task.seed);
  const std::atomic<bool> never{false};
  return fabric->run(
      [&](Node& node) {
        if (auto result = instead(node)) return *result;
        return participate(stage, node);
      },
      never);
}

inline int64_t counter(const RunRecord& record, const std::string& name) {
  int64_t total = 0;
  for (const NodeReport& node : record.nodes)
    if (node.counters.count(name)) total += node.counters.at(name);
  return total;
}

}  // namespace tutti::testing_support
