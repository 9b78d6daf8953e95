#include "testbed/tuned.h"

namespace tutti {

void visit(RecordVisitor& v, TuningTrial& trial) {
  v.field("value", trial.value, "Value of the setting");
  v.field("status", trial.status, "How the run ended, or `refused`");
  v.field("to_target_s", trial.to_target_s, "Time to target");
  v.field("quality", trial.quality, "On validation samples at the end");
  v.field("total_s", trial.total_s, "Training time");
  v.field("energy_j", trial.energy_j, "Energy");
  v.field("wall_s", trial.wall_s, "Time that the run took here, whatever its clock");
  v.field("samples", trial.samples, "Samples of all workers");
}

void visit(RecordVisitor& v, ComparedTuning& tuning) {
  v.field("setting", tuning.setting, "Setting that was searched");
  v.field("range", tuning.range, "Range that was searched, as it was given");
  v.field("seed", tuning.seed, "Seed of the trials, which counts for nothing else");
  v.field("value", tuning.value, "Value that was chosen");
  v.field(
      "at_edge", tuning.at_edge,
      "Whether it is the least or the greatest one that was tried: a better one may lie beyond");
  v.field("tried_by", tuning.tried_by,
          "The strategy that learns the same and whose trials decided, if it is another");
  v.field("trials", tuning.trials, "Runs of the task, one for each value");
  v.field("total_s", tuning.total_s, "Training time of all trials");
  v.field("energy_j", tuning.energy_j, "Energy of all trials");
  v.field("wall_s", tuning.wall_s, "Time that all trials took here");
}

}  // namespace tutti
