#include "strategies/pipeline/stage_costs.h"

#include <algorithm>
#include <cmath>

#include "collectives/topology.h"
#include "fabric/capabilities.h"
#include "models/stage.h"
#include "strategies/gradient_sum.h"
#include "strategies/parameter_layout.h"
#include "strategies/pipeline/shard_costs.h"

namespace tutti {
namespace {

// Between processes of one host: what shared memory carries, within a factor.
constexpr double kLocalBandwidth = 5e9;

double bytes_of_values(size_t values) { return static_cast<double>(values * sizeof(float)); }

// How those with the parameters of a stage sum them; no rounds where there is one, or where servers
// do it.
std::vector<Round> summing_rounds(const Placement& placement, const PipelineConfig& config,
                                  size_t stage, size_t count) {
  const Group holders = placement.holders(stage, 0);
  if (holders.size() == 1 || config.servers > 0) return {};
  return topology(config.topology).rounds(holders, count);
}

// A message from node to node passes two links.
double latency_of(const ClusterConfig& cluster) {
  return capabilities_of(cluster).declared_hosts ? 2 * cluster.latency_s : 0;
}

std::vector<std::vector<StageTask>> tasks_of(const Placement& placement) {
  std::vector<std::vector<StageTask>> tasks;
  for (size_t node = 0; node < placement.nodes; ++node)
    tasks.push_back(own_tasks(placement.schedule, placement.shape(0), node));
  return tasks;
}

std::vector<StageTimes> all_times(const Placement& placement, const PipelineConfig& config,
                                  const PlanInput& input) {
  std::vector<StageTimes> times;
  for (size_t s = 0; s < placement.stages.size(); ++s)
    times.push_back(times_of(placement, config, input, s));
  return times;
}

// What the others wait for: the slowest stage, or what passes.
double bottleneck_s(const Placement& placement, const PipelineConfig& config,
                    const PlanInput& input) {
  double most_s = 0;
  const std::vector<StageTimes> times = all_times(placement, config, input);
  for (size_t s = 0; s < times.size(); ++s)
    most_s = std::max({most_s, times[s].forward_s + times[s].backward_s + times[s].add_s,
                       s + 1 < times.size() ? times[s].transfer_s : 0});
  return most_s;
}

// The busiest server takes gradients, updates and sends parameters, one after the other.
double served_update_seconds(const Placement& placement, const PipelineConfig& config,
                             const PlanInput& input) {
  const double bandwidth = shared_bandwidth(input.cluster, 1);
  double slowest_s = 0;
  for (int64_t server = 0; server < config.servers; ++server) {
    double own_s = 2 * latency_of(input.cluster);
    const Range stages = stages_on_server(placement, config, static_cast<size_t>(server));
    for (size_t s = stages.begin; s < stages.end; ++s) {
      const size_t count = stage_of(input.architecture, placement.stages[s]).parameter_count;
      const auto holders = static_cast<double>(placement.holders(s, 0).size());
      const auto passed = static_cast<double>(count * (element_bytes(input) + sizeof(float)));
      own_s += holders * passed / bandwidth +
               5 * bytes_of_values(count) / input.cluster.memory_bandwidth;
    }
    slowest_s = std::max(slowest_s, own_s);
  }
  return slowest_s;
}

}  // namespace

double shared_bandwidth(const ClusterConfig& cluster, size_t senders) {
  if (!capabilities_of(cluster).declared_hosts) return kLocalBandwidth;
  return cluster.bandwidth /
         static_cast<double>(std::min(static_cast<size_t>(cluster.nodes_per_host), senders));
}

size_t element_bytes(const PlanInput& input) { return sum_element_bytes(input.task); }

double micro_batch_samples(const PlanInput& input, size_t micro_batches) {
  return std::ceil(static_cast<double>(input.task.global_batch) /
                   static_cast<double>(micro_batches));
}

// The first shard has the most, where parts are not equal.
StageTimes times_of(const Placement& placement, const PipelineConfig& config,
                    const PlanInput& input, size_t stage) {
  const Architecture own = part_of_stage(placement, input.architecture, stage, 0);
  const double samples = micro_batch_samples(input, placement.micro_batches);
  const auto whole_samples = static_cast<size_t>(samples);
  const auto layers = static_cast<double>(own.layers.size());
  double pass_s = 0, forward_s = 0, backward_s = 0;  // on the slowest node that has the stage
  for (size_t s = 0; s < placement.shards; ++s)
    for (const Rank rank : placement.holders(stage, s).ranks) {
      const double compute_s = samples * own.forward_flops() / speed_of(input.cluster, rank);
      const double layers_s = overhead_of(input.cluster, rank, 0, layers);
      pass_s = std::max(pass_s, overhead_of(input.cluster, rank, 1, 0));
      forward_s = std::max(forward_s, compute_s + layers_s);
      backward_s = std::max(backward_s, 2 * compute_s + layers_s);
    }
  const double latency_s = latency_of(input.cluster);
  const auto sums_s = [&](const std::vector<size_t>& exchanges) {
    return exchange_seconds(placement, config, input.cluster, exchanges);
  };
  return {.forward_s = pass_s + forward_s + sums_s(forward_exchanges(own, whole_samples)),
          .backward_s = backward_s + sums_s(backward_exchanges(own, whole_samples)),
          .transfer_s = latency_s + samples * bytes_of_values(output_values(own)) /
                                        shared_bandwidth(input.cluster, placement.shards),
          // The sum is read and written, what is added is read.
          .add_s = static_cast<double>(own.parameter_count *
                                       (2 * element_bytes(input) + sizeof(float))) /
                   input.cluster.memory_bandwidth,
          .pass_s = pass_s};
}

double step_seconds(const Placement& placement, const PipelineConfig& config,
                    const PlanInput& input) {
  const bool is_ring = topology(config.topology).rounds == ring;
  double slowest_s = served_update_seconds(placement, config, input);
  for (size_t stage = 0; stage < placement.stages.size() && config.servers == 0; ++stage) {
    const Architecture own = part_of_stage(placement, input.architecture, stage, 0);
    const std::vector<Round> rounds = summing_rounds(placement, config, stage, own.parameter_count);
    const auto bytes = static_cast<double>(volume_sent(rounds).elements * element_bytes(input));
    const double update_s =
        5 * bytes_of_values(own.parameter_count) / input.cluster.memory_bandwidth;
    // Around a ring each host sends once for every group that passes it.
    const double bandwidth =
        shared_bandwidth(input.cluster, is_ring ? placement.nodes * placement.shards
                                                : static_cast<size_t>(input.cluster.workers));
    const double rounds_s = static_cast<double>(rounds.size()) * latency_of(input.cluster);
    slowest_s = std::max(slowest_s, rounds_s + bytes / bandwidth + update_s);
  }
  if (placement.asynchronous()) return bottleneck_s(placement, config, input) + slowest_s;
  return time_of(placement.shape(0), tasks_of(placement), all_times(placement, config, input)) +
         slowest_s;
}

double bubble_share(const Placement& placement, const PipelineConfig& config,
                    const PlanInput& input) {
  if (placement.nodes == 1) return 0;  // not even by rounding
  const std::vector<StageTimes> times = all_times(placement, config, input);
  double busy_s = 0;
  for (size_t s = 0; s < times.size(); ++s) {
    const Architecture own = part_of_stage(placement, input.architecture, s, 0);
    const auto samples = static_cast<size_t>(micro_batch_samples(input, placement.micro_batches));
    busy_s += times[s].forward_s + times[s].backward_s + times[s].add_s;
    for (const auto& sums : {forward_exchanges(own, samples), backward_exchanges(own, samples)})
      busy_s -= exchange_seconds(placement, config, input.cluster, sums);
  }
  if (placement.asynchronous())
    return 1 -
           busy_s / (bottleneck_s(placement, config, input) * static_cast<double>(placement.nodes));
  busy_s *= static_cast<double>(placement.shape(0).micro_batches);
  const double total_s = time_of(placement.shape(0), tasks_of(placement), times);
  return 1 - busy_s / (total_s * static_cast<double>(placement.nodes));
}

double stage_memory(const PipelineConfig& config, const PlanInput& input, const Architecture& stage,
                    size_t in_flight, double samples) {
  const auto values = static_cast<double>(stage.parameter_count);
  const double state =
      config.servers > 0 ? 0 : optimizer_cost(input.optimizer, layout_of(stage)).values;
  const auto under_way = static_cast<double>(in_flight);
  const double incoming = bytes_of_values(input_values(stage)) * samples;
  const double outgoing = bytes_of_values(output_values(stage)) * samples;
  // A slot's activations include its input, and one more may arrive meanwhile. Recomputing keeps
  // the inputs, and two slots each for forward and backward passes with what they send.
  const double activations = stage.activation_bytes() * samples;
  const double slopes = slope_bytes(stage) * samples;
  const double kept = config.recompute
                          ? 4 * (activations - incoming) + 2 * slopes + under_way * incoming
                          : under_way * (activations + slopes);
  const double arriving = stage.place.layer > 0 ? incoming : 0;
  const double versions =  // of the weights
      config.vertical_sync ? static_cast<double>(input.cluster.workers) : under_way;
  const bool asynchronous = config.schedule == PipelineSchedule::kAsynchronous;
  const double stashed = asynchronous && versions > 1 ? versions * values * sizeof(float) : 0;
  return stashed + values * (2 * sizeof(float) + static_cast<double>(element_bytes(input))) +
         state * sizeof(float) + kept + arriving + 2 * outgoing;
}

double node_memory(const Placement& placement, const PipelineConfig& config, const PlanInput& input,
                   Rank rank) {
  const size_t node = placement.node_of(rank);
  const PipelineShape shape = placement.shape(0);
  const auto tasks = own_tasks(placement.schedule, shape, node);
  const double samples = micro_batch_samples(input, placement.micro_batches);
  double bytes = 0;
  size_t own_values = 0;
  for (const size_t s : shape.stages_of(node)) {
    const Architecture stage =
        part_of_stage(placement, input.architecture, s, placement.shard_of(rank));
    bytes += stage_memory(config, input, stage, most_in_flight(tasks, s), samples);
    own_values += stage.parameter_count;
  }
  // Those of all stages come once the rest has gone.
  const double gathered = bytes_of_values(input.architecture.parameter_count + own_values);
  return rank == 0 ? std::max(bytes, gathered) : bytes;
}

StepCost node_traffic(const Placement& placement, const PipelineConfig& config,
                      const PlanInput& input, Rank rank) {
  const size_t replica = placement.replica_of(rank), node = placement.node_of(rank);
  const PipelineShape shape = placement.shape(replica);
  StepCost cost;
  for (const size_t s : shape.stages_of(node)) {
    // The first copy of a stage has the most micro-batches, where they are not equal.
    const size_t copies = shape.copies_of(s);
    const size_t most = (shape.micro_batches + copies - 1) / copies;
    const auto micro_batches = static_cast<double>(most);
    const double samples = static_cast<double>(input.task.global_batch) /
                           static_cast<double>(placement.replicas * copies);
    const Architecture stage =
        part_of_stage(placement, input.architecture, s, placement.shard_of(rank));
    if (placement.shards > 1)
      for (size_t micro = placement.micro_batches_of(replica).begin;
           micro < placement.micro_batches_of(replica).end; ++micro) {
        const Range part =
            part_of(static_cast<size_t>(input.task.global_batch), placement.micro_batches, micro);
        const Volume sums = exchange_volume(placement, config, stage, part.size());
        cost.bytes_sent += bytes_of_values(sums.elements);
        cost.messages += static_cast<double>(sums.messages);
      }
    if (s + 1 < placement.stages.size()) {
      cost.bytes_sent += samples * bytes_of_values(output_values(stage));
      cost.messages += micro_batches;
    } else {  // the loss, to all others
      cost.bytes_sent += static_cast<double>((placement.nodes - 1) * sizeof(double));
      cost.messages += static_cast<double>(placement.nodes - 1);
    }
    if (s > 0) {
      cost.bytes_sent += samples * bytes_of_values(input_values(stage));
      cost.messages += micro_batches;
    }
    if (config.servers > 0) {  // the gradient
      cost.bytes_sent += static_cast<double>(stage.parameter_count * element_bytes(input));
      cost.messages += 1;
    }
    const Volume volume = volume_sent(summing_rounds(placement, config, s, stage.parameter_count));
    cost.bytes_sent += static_cast<double>(volume.elements * element_bytes(input));
    cost.messages += static_cast<double>(volume.messages);
  }
  if (rank == placement.rank_of(0, placement.stages.size() - 1, 0)) {  // the loss, to servers
    cost.bytes_sent += static_cast<double>(config.servers) * sizeof(double);
    cost.messages += static_cast<double>(config.servers);
  }
  return cost;
}

}  // namespace tutti
