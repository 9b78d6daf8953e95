// Learning rate and global batch over time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/schema.h"

namespace tutti {

struct OptimizerConfig;

enum class ScheduleKind { kConstant, kStep, kCosine, kGrowBatch };
constexpr auto words(ScheduleKind) {
  return WordList<4>{"constant", "step", "cosine", "grow_batch"};
}

// The keys of [optimizer] about time.
struct ScheduleConfig {
  ScheduleKind kind = ScheduleKind::kConstant;
  double warmup_epochs = 0;   // the rate rises linearly from 0 over this many epochs
  double step_epochs = 1;     // step, grow_batch: how often the rate falls or the batch grows
  double step_factor = 0.5;   // step: times this; grow_batch: the batch is divided by this instead
  double final_fraction = 0;  // cosine: the rate ends at this share of lr
  int64_t base_batch = 0;     // linear scaling: lr is meant for this global batch; 0: off
};

void visit(Visitor& visitor, ScheduleConfig& config);

class Schedule {
 public:
  Schedule(const OptimizerConfig& config, int64_t global_batch, int64_t epochs);
  // Makes the run end before its epochs do: rates that fall until its end then fall until here.
  void end_at(double epoch);
  double rate(double epoch) const;  // `epoch` counts fractions: 1.5 is halfway the second
  int64_t global_batch(int64_t epoch) const;

 private:
  ScheduleConfig config_;
  double lr_;
  int64_t global_batch_;
  double end_;  // in epochs
};

}  // namespace tutti
