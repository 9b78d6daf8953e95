#include "strategies/planning.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "models/stage.h"
#include "strategies/parameter_layout.h"

namespace tutti {
namespace {

// A batch that grows is largest in the last epoch, and never more than all samples.
TaskConfig at_largest_batch(const PlanInput& input) {
  const TaskConfig& task = input.task;
  const Schedule schedule(input.optimizer, task.global_batch, task.epochs);
  const int64_t last = schedule.global_batch(task.epochs - 1);
  const int64_t most = input.data.train > 0 ? static_cast<int64_t>(input.data.train) : last;
  TaskConfig result = task;
  result.global_batch = std::max(task.global_batch, std::min(last, most));
  return result;
}

void check_batches(const PlanInput& input, int64_t parts) {
  const TaskConfig& task = input.task;
  const int64_t workers = input.cluster.workers;
  const auto samples = static_cast<int64_t>(input.data.train);
  if (input.data.counted && workers > samples)
    throw ConfigError(
        "cluster.workers",
        fmt::format("cluster.workers = {} is more than the {} training samples", workers, samples));
  if (task.global_batch < parts)
    throw ConfigError("task.global_batch",
                      fmt::format("task.global_batch = {} leaves some of cluster.workers = {} "
                                  "without a sample, as it is cut into {} parts; raise the one or "
                                  "lower the other",
                                  task.global_batch, workers, parts));
  if (input.data.counted && task.global_batch > samples)
    throw ConfigError("task.global_batch",
                      fmt::format("task.global_batch = {} is more than the {} training samples",
                                  task.global_batch, samples));
}

void check_target(const PlanInput& input) {
  const TaskConfig& task = input.task;
  if (input.data.counted && input.data.validation == 0 && task.target > 0)
    throw ConfigError("task.target",
                      "task.target is measured on validation samples, but there are none; raise "
                      "task.data.validation");
  if (input.data.classes > 0 && task.target > 1)
    throw ConfigError(
        "task.target",
        fmt::format(
            "task.target = {} is more than 1, but accuracy is a share from 0 to 1{}", task.target,
            task.target <= 100 ? fmt::format("; did you mean {:.6g}?", task.target / 100) : ""));
}

void check_deterministic(const PlanInput& input, int64_t parts) {
  const TaskConfig& task = input.task;
  if (!task.deterministic) return;
  if (task.partition != Partition::kGlobal)
    throw ConfigError("task.partition",
                      fmt::format("task.deterministic = true needs task.partition = \"global\": "
                                  "with \"{}\" the samples of a batch depend on the workers",
                                  word_of(task.partition)));
  if (most_threads(input.cluster) != 1)
    throw ConfigError(
        input.cluster.thread_counts.empty() ? "cluster.threads" : "cluster.thread_counts",
        "task.deterministic = true needs workers of one thread (cluster.threads): gradients depend "
        "on their number");
  if (task.lanes < parts)
    throw ConfigError("task.lanes",
                      fmt::format("task.deterministic cuts a batch into task.lanes = {}, fewer "
                                  "than the {} parts for cluster.workers = {}; raise task.lanes",
                                  task.lanes, parts, input.cluster.workers));
}

}  // namespace

AtLargestBatch::AtLargestBatch(const PlanInput& input)
    : task_(at_largest_batch(input)),
      input_{task_, input.cluster, input.optimizer, input.architecture, input.data} {}

std::vector<std::string> workers_and(const ClusterConfig& cluster, const char* role,
                                     int64_t count) {
  std::vector<std::string> roles(static_cast<size_t>(cluster.workers), "worker");
  roles.insert(roles.end(), static_cast<size_t>(count), role);
  return roles;
}

Plan begin_plan(const PlanInput& input, const Taxonomy& taxonomy, const Staff& staff) {
  const std::vector<std::string> roles =
      staff.roles.empty() ? workers_and(input.cluster, "", 0) : staff.roles;
  const int64_t parts = staff.least_parts > 0 ? staff.least_parts : input.cluster.workers;
  validate_cluster(input.cluster, std::ssize(roles));
  check_batches(input, parts);
  check_target(input);
  check_deterministic(input, parts);
  Plan plan;
  plan.taxonomy = taxonomy;
  plan.workers = input.cluster.workers;
  plan.cluster = input.cluster;
  plan.architecture = std::make_shared<Architecture>(input.architecture);
  for (const std::string& role : roles)
    plan.nodes.push_back({.role = role, .layers = {{0, input.architecture.layers.size()}}});
  count_steps(plan, input);
  return plan;
}

double worker_memory(const PlanInput& input, double extra_bytes) {
  const TaskConfig& task = input.task;
  const auto parameters = static_cast<double>(input.architecture.parameter_count) * sizeof(float);
  const auto parts = std::max(input.cluster.workers, task.deterministic ? task.lanes : 1);
  const int64_t most = (task.global_batch + parts - 1) / parts;
  const auto share = static_cast<double>(most);
  const double state = optimizer_cost(input.optimizer, layout_of(input.architecture)).values;
  return parameters * 2 + state * sizeof(float) +
         share * (input.architecture.activation_bytes() + slope_bytes(input.architecture)) +
         extra_bytes;
}

void set_traffic(NodePlan& node, const StepCost& cost) {
  node.bytes_sent = cost.bytes_sent;
  node.messages = cost.messages;
}

void set_no_model(NodePlan& node) {
  node.has_model = false;
  node.layers.clear();
}

void set_workers(Plan& plan, const PlanInput& input, const StepCost& cost) {
  const AtLargestBatch largest(input);
  const double bytes = worker_memory(largest.input(), cost.extra_memory);
  for (size_t rank = 0; rank < static_cast<size_t>(plan.workers); ++rank) {
    set_traffic(plan.nodes[rank], cost);
    plan.nodes[rank].memory_bytes = bytes;
  }
}

void count_steps(Plan& plan, const PlanInput& input, double samples_per_step) {
  const TaskConfig& task = input.task;
  const Schedule schedule(input.optimizer, task.global_batch, task.epochs);
  const auto samples = static_cast<int64_t>(input.data.train);
  if (!input.data.counted) return;
  plan.steps = plan.samples = 0;
  const auto in_epoch = [&](int64_t epoch, int64_t& batch) {
    batch = std::clamp<int64_t>(schedule.global_batch(epoch), 1, samples);
    return (samples + batch - 1) / batch;
  };
  int64_t batch = 0;
  if (samples_per_step > 0)
    plan.steps = static_cast<int64_t>(
        std::ceil(static_cast<double>(task.epochs * samples) / samples_per_step - 1e-9));
  const auto enough = [&] { return task.max_steps > 0 && plan.steps >= task.max_steps; };
  for (int64_t epoch = 0; epoch < task.epochs && samples_per_step <= 0 && !enough(); ++epoch)
    plan.steps += in_epoch(epoch, batch);
  if (task.max_steps > 0) plan.steps = std::min(plan.steps, task.max_steps);
  if (samples_per_step > 0) return;
  int64_t left = plan.steps;
  for (int64_t epoch = 0; epoch < task.epochs && left > 0; ++epoch) {
    const int64_t steps = in_epoch(epoch, batch);
    plan.samples += std::min(samples, left * batch);  // the last batch of an epoch may be smaller
    left -= steps;
  }
}

std::vector<std::string> Plan::roles() const {
  std::vector<std::string> roles;
  for (const NodePlan& node : nodes) roles.push_back(node.role);
  return roles;
}

const NodePlan& Plan::busiest() const {
  return *std::max_element(nodes.begin(), nodes.end(), [](const NodePlan& a, const NodePlan& b) {
    return a.bytes_sent < b.bytes_sent;
  });
}

double Plan::most_memory_bytes() const {
  double most = 0;
  for (size_t rank = 0; rank < static_cast<size_t>(workers); ++rank)
    most = std::max(most, nodes[rank].memory_bytes);
  return most;
}

bool operator==(const Plan& a, const Plan& b) {
  return a.epoch == b.epoch && a.taxonomy == b.taxonomy && a.equivalence == b.equivalence &&
         a.workers == b.workers && a.nodes == b.nodes && a.role_settings == b.role_settings &&
         a.recorder == b.recorder && a.steps == b.steps && a.samples == b.samples &&
         a.settling_steps == b.settling_steps && a.recurs_every == b.recurs_every &&
         a.resumed == b.resumed && a.rows == b.rows && a.sharing == b.sharing &&
         a.gradients_shared == b.gradients_shared && a.keeps == b.keeps &&
         a.in_words == b.in_words && a.reasons == b.reasons && a.decided == b.decided &&
         a.facts == b.facts;
}

}  // namespace tutti
