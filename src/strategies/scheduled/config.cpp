#include "strategies/scheduled/config.h"

#include <fmt/format.h>

#include "collectives/topology.h"
#include "core/error.h"
#include "models/linear.h"

namespace tutti {

void visit(Visitor& v, ScheduledConfig& c) {
  choice(v, "schedule", c.schedule,
         "which coordinates a round updates: those that changed most and do not conflict, any, "
         "or all in turn");
  v.field("parallel", c.parallel, kAtLeastOne, "coordinates that a round updates at once");
  v.field("conflict", c.conflict, kFraction,
          "priority: features of this correlation or more are not updated in one round; 1: all "
          "may be");
  v.field("gap", c.gap, kFraction,
          "stop when the duality gap, looked at whenever quality is measured, is below this share "
          "of the objective; 0: never");
  v.choice("topology", c.topology, topologies_of_messages(),
           "how changes of the residual are summed");
}

void validate(const ScheduledConfig& config, const TaskConfig& task) {
  const auto* const linear = task.model.design.find<LinearModel>();
  if (!linear)
    throw ConfigError("strategy.kind",
                      fmt::format("strategy.kind = \"scheduled\" solves for one weight after the "
                                  "other, which has a formula for task.model = \"linear\" only, "
                                  "not for \"{}\"; choose another strategy",
                                  task.model.kind()));
  if (task.partition != Partition::kGlobal)
    throw ConfigError("task.partition",
                      fmt::format("strategy.kind = \"scheduled\" deals features to workers, but "
                                  "task.partition = \"{}\" deals samples; use \"global\"",
                                  word_of(task.partition)));
  if (config.gap > 0 && linear->l1 == 0)
    throw ConfigError("strategy.gap",
                      fmt::format("strategy.gap = {} is measured against a bound that needs "
                                  "task.model.l1 above 0; set that, or strategy.gap = 0",
                                  config.gap));
}

}  // namespace tutti
