#include "strategies/parameter_server/costs.h"

#include <algorithm>

#include "models/sparse_model.h"
#include "strategies/gradient_sum.h"
#include "strategies/parameter_layout.h"
#include "strategies/parameter_server/entry.h"
#include "strategies/parameter_server/layout.h"
#include "strategies/parameter_server/messages.h"

namespace tutti::parameter_server {
namespace {

double gradient_bytes(const PlanInput& input) {
  return static_cast<double>(sum_element_bytes(input.task));
}

// What a worker has beyond its model: the parameters that come in, and what it sums up itself.
double extra_memory(const PlanInput& input, const Config& config, size_t largest) {
  const auto count = static_cast<double>(input.architecture.parameter_count);
  double bytes = count * sizeof(float);
  if (input.task.deterministic) bytes += count * gradient_bytes(input);
  if (config.pull_every > 1) {  // the worker's own steps need memory too
    const Layout all = layout_of(input.architecture, {0, input.architecture.parameter_count});
    bytes += (count + optimizer_cost(input.optimizer, all).values) * sizeof(float);
  }
  // What is passed on.
  return bytes +
         static_cast<double>(config.replicas) * static_cast<double>(largest) * sizeof(float);
}

// Keys go to the shards twice, rows come and gradients go; each batch touches the bias. Every
// server passes on what it updates: at most once for each push.
StepCosts row_step_costs(const PlanInput& input, const Config& config) {
  const double gradient = gradient_bytes(input);
  const auto width = static_cast<double>(input.architecture.row_width);
  const auto workers = static_cast<double>(input.cluster.workers);
  const auto count = static_cast<double>(shards_of(config));
  const auto servers = static_cast<double>(config.servers);
  const auto copies = static_cast<double>(config.replicas);
  const double touched = touched_rows(input);
  const StepCost worker{
      .bytes_sent =
          touched * (2 * sizeof(uint64_t) + width * gradient) + 2 * count * sizeof(Request),
      .messages = 5 * count,
      .extra_memory = touched * (sizeof(uint64_t) + width * (sizeof(float) + gradient))};
  const double shards = count / servers;  // of each
  const double rows = workers * touched / servers;
  const StepCost server{.bytes_sent = rows * width * sizeof(float) +
                                      2 * workers * shards * sizeof(Reply) +
                                      copies * (rows * (width * sizeof(float) + sizeof(uint64_t)) +
                                                3 * workers * shards * sizeof(Entry)),
                        .messages = workers * shards * (3 + 5 * copies),
                        .extra_memory = worker.extra_memory};
  return {worker, server};
}

}  // namespace

double touched_rows(const PlanInput& input) {
  const double samples =
      static_cast<double>(input.task.global_batch) / static_cast<double>(input.cluster.workers);
  return std::min(static_cast<double>(input.architecture.rows()),
                  samples * input.architecture.values_per_sample + 1);
}

StepCosts step_costs(const PlanInput& input, const Config& config,
                     const std::vector<Range>& shards) {
  if (input.architecture.row_width > 0) return row_step_costs(input, config);
  const double element = gradient_bytes(input);
  const auto workers = static_cast<double>(input.cluster.workers);
  const double pulls = 1.0 / static_cast<double>(config.pull_every);
  StepCost worker, server;
  size_t largest = 0, heaviest = 0, answers = 0;  // messages with parameters
  const size_t per_server = shards.size() / static_cast<size_t>(config.servers);
  size_t held = 0, pieces_held = 0;  // by the server of this shard, which has those next to it, too
  for (size_t i = 0; i < shards.size(); ++i) {
    const Range shard = shards[i];
    if (i % per_server == 0) held = pieces_held = 0;
    const double pieces = input.task.deterministic || config.pull_every > 1
                              ? 1.0
                              : static_cast<double>(pieces_of(input.architecture, shard).size());
    // One request asks for the next parameters and announces the gradient; ahead of it, two do.
    const double requests = asks_ahead_of_push(config) ? 2 : 1;
    worker.bytes_sent +=
        pulls * (static_cast<double>(shard.size()) * element + requests * sizeof(Request));
    worker.messages += pulls * (requests + pieces);
    largest = std::max(largest, shard.size());
    held += shard.size();
    pieces_held += pulls_layers(config)
                       ? std::max<size_t>(1, forward_pieces_of(input.architecture, shard).size())
                       : 1;
    heaviest = std::max(heaviest, held);
    answers = std::max(answers, pieces_held);
  }
  const auto served = static_cast<double>(heaviest) * sizeof(float);
  const auto shards_served = static_cast<double>(per_server);
  server.bytes_sent = pulls * workers * (served + shards_served * sizeof(Reply));
  server.messages = pulls * workers * (shards_served + static_cast<double>(answers));
  // Every server passes on the updates of its shards: one a step, or one for each push.
  const bool collects =
      config.consistency == ConsistencyKind::kBsp || config.consistency == ConsistencyKind::kBackup;
  const double updates = collects ? 1 : workers;
  const auto copies = static_cast<double>(config.replicas);
  server.bytes_sent +=
      pulls * copies * (updates * served + shards_served * 2 * workers * sizeof(Entry));
  server.messages += pulls * copies * shards_served * (2 * workers + updates);
  worker.extra_memory = server.extra_memory = extra_memory(input, config, largest);
  return {worker, server};
}

// Of a sparse model a worker holds the rows of its batch, and in the end all that are few.
double worker_memory_bytes(const PlanInput& input, const Config& config,
                           const std::vector<Range>& shards) {
  const double extra = step_costs(input, config, shards).worker.extra_memory;
  if (input.architecture.row_width == 0) return worker_memory(input, extra);
  const size_t count = input.architecture.parameter_count;
  return touched_rows(input) * static_cast<double>(input.architecture.row_width) * 2 *
             sizeof(float) +
         (count <= kMostFlat ? 2.0 * static_cast<double>(count * sizeof(float)) : 0) + extra;
}

// A server holds for its shards the parameters and those that are measured, the sum of the
// gradients and the state of the optimizer; and what each worker pushes.
double server_memory_bytes(const PlanInput& input, const Config& config,
                           const std::vector<Range>& shards) {
  if (input.architecture.row_width > 0) return worker_memory_bytes(input, config, shards);
  const double element = gradient_bytes(input);
  const auto count = static_cast<double>(input.architecture.parameter_count);
  const double share = count / static_cast<double>(config.servers);
  const double state = optimizer_cost(input.optimizer, layout_of(input.architecture)).values;
  return static_cast<double>(1 + config.replicas) * share *
             (sizeof(float) * (2 + state / count) + element) +
         static_cast<double>(input.cluster.workers) * share * element;
}

}  // namespace tutti::parameter_server
