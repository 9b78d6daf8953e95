#include "strategies/pipeline/schedule.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "core/error.h"

namespace tutti {

size_t PipelineShape::node_of(size_t stage, size_t copy) const {
  if (copies.empty()) return stage % nodes;
  size_t node = copy;
  for (size_t s = 0; s < stage; ++s) node += copies[s];
  return node;
}

std::vector<size_t> PipelineShape::stages_of(size_t node) const {
  std::vector<size_t> result;
  for (size_t stage = 0; stage < stages; ++stage)
    for (size_t copy = 0; copy < copies_of(stage); ++copy)
      if (node_of(stage, copy) == node) result.push_back(stage);
  return result;
}

bool PipelineShape::computes(size_t node, size_t micro_batch) const {
  if (copies.empty()) return true;
  const size_t stage = stages_of(node).front();
  return node_of(stage, micro_batch % copies[stage]) == node;
}

namespace {

// The naive model parallelism of the textbooks: one micro-batch at a time goes through all stages
// and back, and one node works at a time.
std::vector<StageTask> sequential(const PipelineShape& shape, size_t node) {
  std::vector<StageTask> tasks;
  for (size_t micro = 0; micro < shape.micro_batches; ++micro) {
    const std::vector<size_t> stages = shape.stages_of(node);
    for (const size_t stage : stages) tasks.push_back({false, stage, micro});
    for (size_t i = stages.size(); i-- > 0;) tasks.push_back({true, stages[i], micro});
  }
  return tasks;
}

// The k-th forward pass of a node: p micro-batches through its first stage, the same p through its
// next one, and so on; then the next p. With one stage that is simply micro-batch after
// micro-batch.
StageTask forward_pass(const PipelineShape& shape, size_t node, size_t k) {
  if (!shape.copies.empty()) return {false, shape.stages_of(node).front(), k};
  const size_t round = shape.nodes * shape.chunks();
  const size_t chunk = k % round / shape.nodes;
  return {false, chunk * shape.nodes + node, k / round * shape.nodes + k % shape.nodes};
}

StageTask backward_pass(const PipelineShape& shape, size_t node, size_t k) {
  StageTask task = forward_pass(shape, node, k);
  if (!shape.copies.empty()) return {true, task.stage, k};
  const size_t chunk = shape.chunks() - 1 - task.stage / shape.nodes;
  return {true, chunk * shape.nodes + node, task.micro_batch};
}

// Some forward passes first, then one of each in turn, then the backward passes that are left.
std::vector<StageTask> one_of_each(const PipelineShape& shape, size_t node, size_t warm_up) {
  const size_t passes = shape.micro_batches * shape.chunks();
  warm_up = std::min(warm_up, passes);
  std::vector<StageTask> tasks;
  for (size_t k = 0; k < passes + warm_up; ++k) {
    if (k < passes) tasks.push_back(forward_pass(shape, node, k));
    if (k >= warm_up) tasks.push_back(backward_pass(shape, node, k - warm_up));
  }
  return tasks;
}

// Huang et al., "GPipe: efficient training of giant neural networks using pipeline parallelism"
// (NeurIPS 2019): all forward passes, then all backward passes.
std::vector<StageTask> gpipe(const PipelineShape& shape, size_t node) {
  return one_of_each(shape, node, shape.micro_batches * shape.chunks());
}

// Narayanan et al., "PipeDream: generalized pipeline parallelism for DNN training" (SOSP 2019),
// with a flush after each batch: a stage begins to go back as soon as it can, and so holds no more
// micro-batches than there are stages from it to the end. The copies of a stage hold as many each,
// and together at least one for each of them more than those of the next stage: or these would wait
// for what is not sent before they answer.
std::vector<StageTask> one_forward_one_backward(const PipelineShape& shape, size_t node) {
  if (!shape.copies.empty()) {
    size_t under_way = 0;
    for (size_t stage = shape.stages; stage-- > shape.stages_of(node).front();) {
      const size_t copies = shape.copies[stage];
      under_way = (under_way / copies + (under_way % copies ? 1 : 0) + 1) * copies;
    }
    return one_of_each(shape, node, under_way - 1);
  }
  return one_of_each(shape, node, shape.nodes - 1 - node);
}

// Narayanan et al., "Efficient large-scale language model training on GPU clusters using
// Megatron-LM" (SC 2021): a node has several short stages, so that the pipeline fills faster.
std::vector<StageTask> interleaved(const PipelineShape& shape, size_t node) {
  if (shape.chunks() == 1) return one_forward_one_backward(shape, node);
  TUTTI_CHECK(shape.micro_batches % shape.nodes == 0);
  return one_of_each(shape, node,
                     2 * (shape.nodes - 1 - node) + (shape.chunks() - 1) * shape.nodes);
}

// The tasks that have ended, by what later ones wait for.
class Progress {
 public:
  Progress(const PipelineShape& shape, std::span<const StageTimes> times)
      : shape_(shape), times_(times), ends_(2 * shape.stages * shape.micro_batches, -1) {}

  // When the task can start; nothing while what it waits for has not ended.
  std::optional<double> ready_s(const StageTask& task) const {
    if (!task.backward) {
      if (task.stage == 0) return 0;
      return after({false, task.stage - 1, task.micro_batch}, times_[task.stage - 1].transfer_s);
    }
    if (task.stage + 1 == shape_.stages) return after({false, task.stage, task.micro_batch}, 0);
    return after({true, task.stage + 1, task.micro_batch}, times_[task.stage].transfer_s);
  }
  void end(const StageTask& task, double at_s) { ends_[index(task)] = at_s; }

 private:
  size_t index(const StageTask& task) const {
    return 2 * (task.stage * shape_.micro_batches + task.micro_batch) + (task.backward ? 1 : 0);
  }
  std::optional<double> after(const StageTask& task, double delay_s) const {
    const double end_s = ends_[index(task)];
    return end_s < 0 ? std::nullopt : std::optional(end_s + delay_s);
  }

  const PipelineShape& shape_;
  std::span<const StageTimes> times_;
  std::vector<double> ends_;
};

}  // namespace

const std::vector<ScheduleEntry>& pipeline_schedules() {
  static const std::vector<ScheduleEntry> entries = {
      {PipelineSchedule::kSequential, "one node works at a time: the naive way, for comparison",
       sequential},
      {PipelineSchedule::kGpipe, "all forward passes, then all backward passes", gpipe},
      {PipelineSchedule::k1f1b, "forward and backward passes in turn: fewer activations at once",
       one_forward_one_backward},
      {PipelineSchedule::kInterleaved,
       "the same with several stages on each node: a shorter bubble", interleaved},
      {PipelineSchedule::kAsynchronous,
       "batches follow each other without a pause; each updates with old weights",
       one_forward_one_backward},
  };
  return entries;
}

std::vector<StageTask> schedule_tasks(PipelineSchedule schedule, const PipelineShape& shape,
                                      size_t node) {
  return pipeline_schedules().at(static_cast<size_t>(schedule)).tasks(shape, node);
}

std::vector<StageTask> own_tasks(PipelineSchedule schedule, const PipelineShape& shape,
                                 size_t node) {
  std::vector<StageTask> tasks = schedule_tasks(schedule, shape, node);
  std::erase_if(tasks, [&](const StageTask& t) { return !shape.computes(node, t.micro_batch); });
  return tasks;
}

std::vector<StageTask> forward_tasks(const PipelineShape& shape, size_t node) {
  std::vector<StageTask> tasks;
  for (size_t first = 0; first < shape.micro_batches; first += shape.nodes)
    for (const size_t stage : shape.stages_of(node))
      for (size_t micro = first; micro < std::min(first + shape.nodes, shape.micro_batches);
           ++micro)
        tasks.push_back({false, stage, micro});
  return tasks;
}

size_t most_in_flight(std::span<const StageTask> tasks, size_t stage) {
  size_t now = 0, most = 0;
  for (const StageTask& task : tasks) {
    if (task.stage != stage) continue;
    now = task.backward ? now - 1 : now + 1;
    most = std::max(most, now);
  }
  return most;
}

double time_of(const PipelineShape& shape, std::span<const std::vector<StageTask>> tasks,
               std::span<const StageTimes> times) {
  Progress progress(shape, times);
  std::vector<size_t> next(tasks.size());
  std::vector<double> free_s(tasks.size());
  double last_s = 0;
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t node = 0; node < tasks.size(); ++node)
      for (; next[node] < tasks[node].size(); ++next[node], moved = true) {
        const StageTask& task = tasks[node][next[node]];
        const std::optional<double> ready_s = progress.ready_s(task);
        if (!ready_s) break;
        const StageTimes& own = times[task.stage];
        free_s[node] =
            std::max(free_s[node], *ready_s) + (task.backward ? own.backward_s : own.forward_s);
        progress.end(task, free_s[node]);
        if (task.backward) free_s[node] += own.add_s;
        last_s = std::max(last_s, free_s[node]);
      }
  }
  for (size_t node = 0; node < tasks.size(); ++node) TUTTI_CHECK(next[node] == tasks[node].size());
  return last_s;
}

}  // namespace tutti
