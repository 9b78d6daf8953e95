// The learning task as every strategy sees it: the part of a job that stays the same when the
// architecture changes.
#pragma once

#include <cstdint>
#include <string>

#include "core/schema.h"
#include "data/batches.h"
#include "data/data_config.h"
#include "models/model_config.h"

namespace tutti {

// [task]
struct TaskConfig {
  DataConfig data;
  ModelConfig model;
  int64_t global_batch = 128;  // samples per step over all workers
  int64_t epochs = 1;
  int64_t max_steps = 0;  // stop after this many steps; 0: after the epochs
  double target = 0;      // accuracy to reach, or squared error to get below; 0: none
  bool stop_at_target = false;
  double eval_every = 1;  // epochs between measurements of quality
  uint64_t seed = 1;
  Partition partition = Partition::kGlobal;  // how samples are dealt to workers
  bool deterministic = false;  // bitwise the same result on any number of workers and any fabric
  int64_t lanes = 16;          // deterministic: into how many parts a global batch is cut
};

void visit(Visitor& visitor, TaskConfig& config);

// What happens every so many epochs is due at a multiple of them: the first one after `epoch`.
double next_due(double every, double epoch);

}  // namespace tutti
