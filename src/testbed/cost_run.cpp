#include "testbed/cost_run.h"

#include <fmt/format.h>

#include <optional>

#include "core/error.h"
#include "fabric/outcome.h"
#include "jobs/launcher.h"

namespace tutti {

RunRecord run_costs(Job job, const Data& data, const std::atomic<bool>& stop) {
  job.task.target = 0;
  job.cluster.cost_only = true;
  std::optional<Resolved> resolved;
  try {
    resolved = resolve(job, data);
  } catch (const ConfigError&) {
    job.cluster.cost_only = false;
    resolved = resolve(job, data);
  }
  RunRecord record = launch(*resolved, {.out = "", .keep_files = false}, stop);
  if (record.exit_code == kExitInterrupted) throw InterruptedError();
  if (record.exit_code != kExitDone)
    throw Error(fmt::format("the simulation of {} failed: {}", job.name, record.error));
  return record;
}

}  // namespace tutti
