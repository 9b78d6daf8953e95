// Who computes what when, in a pipeline: schedules as data, by pure arithmetic.
//
// A model of S stages is spread over p nodes, stage s on node s mod p, and a batch is cut into m
// micro-batches. A schedule is, for each node, the order of its forward and backward passes; what
// they wait for follows: a forward pass for that of the stage below, a backward pass for that of
// the stage above. In every schedule the micro-batches pass a stage in their order, both ways, so
// that gradients are added in one order and the results of all schedules are the same. Only
// `asynchronous` updates after each of them, which are whole batches there.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "core/schema.h"

namespace tutti {

struct StageTask {
  bool backward = false;
  size_t stage = 0;
  size_t micro_batch = 0;
  friend bool operator==(const StageTask&, const StageTask&) = default;
};

struct PipelineShape {
  size_t nodes = 1;
  size_t stages = 1;  // a multiple of the nodes; more than the nodes are for `interleaved`
  size_t micro_batches = 1;
  // Nodes of each stage, which take micro-batches in turn: the first stage's are the first nodes,
  // and so on. Empty: each stage is on one.
  std::vector<size_t> copies = {};

  size_t chunks() const { return copies.empty() ? stages / nodes : 1; }  // stages of a node
  size_t copies_of(size_t stage) const { return copies.empty() ? 1 : copies[stage]; }
  size_t node_of(size_t stage, size_t copy) const;
  std::vector<size_t> stages_of(size_t node) const;
  // Of two nodes with the same stage, only one computes a micro-batch.
  bool computes(size_t node, size_t micro_batch) const;
};

enum class PipelineSchedule { kSequential, kGpipe, k1f1b, kInterleaved, kAsynchronous };
constexpr auto words(PipelineSchedule) {
  return WordList<5>{"sequential", "gpipe", "1f1b", "interleaved", "asynchronous"};
}

struct ScheduleEntry {
  PipelineSchedule schedule;
  std::string_view summary;
  std::vector<StageTask> (*tasks)(const PipelineShape&, size_t node);
};
const std::vector<ScheduleEntry>& pipeline_schedules();  // in the order of the enum
std::vector<StageTask> schedule_tasks(PipelineSchedule schedule, const PipelineShape& shape,
                                      size_t node);
// The same without those that another copy computes.
std::vector<StageTask> own_tasks(PipelineSchedule schedule, const PipelineShape& shape,
                                 size_t node);

// The forward passes of a node when nothing is trained.
std::vector<StageTask> forward_tasks(const PipelineShape& shape, size_t node);

// Micro-batches whose activations a stage holds at once, at most.
size_t most_in_flight(std::span<const StageTask> tasks, size_t stage);

// How long the passes of a stage take, and what lies between it and the next one.
struct StageTimes {
  double forward_s = 1, backward_s = 1;
  double transfer_s = 0;  // of a micro-batch to the next stage, or back from it
  double add_s = 0;       // of its gradients to the sum, after the backward pass is passed on
  double pass_s = 0;      // part of forward_s that is fixed for a pass
};
// When the last of these tasks (one list for each node) ends if each starts as soon as it can.
// Throws std::logic_error when they wait for each other forever.
double time_of(const PipelineShape& shape, std::span<const std::vector<StageTask>> tasks,
               std::span<const StageTimes> times);

}  // namespace tutti
