#include "strategies/allreduce.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "collectives/all_reduce.h"
#include "core/bytes.h"
#include "core/error.h"
#include "fabric/capabilities.h"
#include "models/stage.h"
#include "strategies/balance.h"
#include "strategies/synchronous.h"

namespace tutti {
namespace {

Group make_group(const ClusterConfig& cluster, size_t index) {
  Group group{.ranks = {}, .index = index, .racks = {}};
  for (int64_t node = 0; node < cluster.workers; ++node) {
    group.ranks.push_back(static_cast<Rank>(node));
    group.racks.push_back(static_cast<int>(rack_of(cluster, node)));
  }
  return group;
}

// One bucket: a range of the gradients and the all-reduce that sums it.
struct Bucket {
  Range range;
  size_t missing = 0;  // values of this step that are not ready yet
  std::unique_ptr<AllReduce> sum;
};

class BucketExchange : public GradientExchange {
 public:
  BucketExchange(Context& context, const AllReduceConfig& config) : context_(context) {
    const size_t count = context.model.parameters().size();
    const auto make = [&](size_t elements, const Reduction& reduction) {
      const TopologyEntry& entry = topology(config.topology);
      const Group group =
          make_group(context.cluster, static_cast<size_t>(context.node.endpoint().rank()));
      TUTTI_CHECK(entry.rounds || context.window);
      return entry.rounds
                 ? make_all_reduce(context.node, &context.watch, entry.rounds, group, elements,
                                   reduction)
                 : make_direct_all_reduce(context.node, &context.watch, *context.window, reduction);
    };
    if (context.task.deterministic) {
      exact_ = make(count, kSumExact);
      const auto memory = context.window ? context.window->of(context.node.endpoint().rank())
                                               .subspan(exact_offset(count),
                                                        count * sum_element_bytes(context.task))
                                         : std::span<std::byte>{};
      sum_.emplace(context, context.model.gradients(), memory);
      return;
    }
    // In shared memory the whole sum is over before overlapping it would pay.
    const bool direct = context.window != nullptr;
    for (const Range range : direct
                                 ? std::vector<Range>{{0, count}}
                                 : make_buckets(context.model.architecture(), config.bucket_bytes))
      buckets_.push_back({range, range.size(), make(range.size(), kSumFloat)});
  }

  // In the window the exact sums follow the gradients, aligned for 16-byte values.
  static size_t exact_offset(size_t count) { return (count * sizeof(float) + 63) / 64 * 64; }

  void ready(uint64_t step, Range range) override {
    for (size_t i = 0; i < buckets_.size(); ++i) {
      Bucket& bucket = buckets_[i];
      const size_t begin = std::max(range.begin, bucket.range.begin);
      const size_t end = std::min(range.end, bucket.range.end);
      if (begin < end) bucket.missing -= end - begin;
    }
    // Buckets start in one order on every node, whatever the order in which layers become ready.
    while (started_ < buckets_.size() && buckets_[started_].missing == 0) {
      Bucket& bucket = buckets_[started_];
      bucket.sum->start(writable_bytes_of(context_.model.gradients().subspan(bucket.range.begin,
                                                                             bucket.range.size())),
                        Tag(Purpose::kGradient, Tag::wrapped(step), started_));
      ++started_;
    }
    for (size_t i = 0; i < started_; ++i) buckets_[i].sum->advance();
  }

  void finish(uint64_t step) override {
    TUTTI_CHECK(started_ == buckets_.size());
    (void)step;
    for (Bucket& bucket : buckets_) {
      bucket.sum->finish();
      bucket.missing = bucket.range.size();
    }
    started_ = 0;
  }

  GradientSum& exact_sum() override { return *sum_; }

  void finish_exact(uint64_t step) override {
    exact_->start(sum_->bytes(), Tag(Purpose::kGradient, Tag::wrapped(step)));
    exact_->finish();
  }

 private:
  Context& context_;
  std::vector<Bucket> buckets_;
  size_t started_ = 0;
  std::unique_ptr<AllReduce> exact_;
  std::optional<GradientSum> sum_;
};

class AllReduceStrategy : public Strategy {
 public:
  void visit(Visitor& v) override {
    std::vector<std::string_view> names;
    for (const TopologyEntry& entry : topology_catalog()) names.push_back(entry.name);
    v.choice("topology", config_.topology, names, "who exchanges with whom");
    v.quantity("bucket", config_.bucket_bytes, Unit::kBytes,
               "gradients are exchanged in buckets of this size during the backward pass");
    v.field("balance", config_.balance,
            "a worker's share of each batch follows how fast it was in the last steps");
  }

  Taxonomy taxonomy() const override {
    return {.structure = "peer-to-peer",
            .parallelism = "data",
            .optimisation = "centralised",
            .timing = Timing::kSynchronous,
            .pattern = topology(config_.topology).pattern,
            .data = "shares of each batch",
            .stragglers = config_.balance ? "get smaller shares" : "everybody waits",
            .communication = "sums of gradients",
            .computation = "a share of the batch"};
  }

  Plan plan(const PlanInput& input) const override {
    Plan plan = begin_plan(input, taxonomy());
    validate(input.task, input.cluster);
    plan.equivalence = synchronous_class(input.task);
    plan.settling_steps = config_.balance ? Balance::kSettlingSteps : 0;
    const std::vector<StepCost> costs = step_costs(input);
    const AtLargestBatch largest(input);
    const double bytes =
        worker_memory(largest.input(), costs[0].extra_memory) + balanced_memory(largest.input());
    for (size_t rank = 0; rank < costs.size(); ++rank) {
      set_traffic(plan.nodes[rank], costs[rank]);
      plan.nodes[rank].memory_bytes = bytes;
      plan.nodes[rank].window_bytes = window_bytes(input);
    }
    if (in_shared_memory()) {
      plan.sharing = Sharing::kGradients;
      plan.gradients_shared = true;
    }
    return plan;
  }

  NodeResult run(Context& context) const override {
    BucketExchange exchange(context, config_);
    train_synchronously(context, exchange, config_.balance);
    return {context.members};
  }

 private:
  bool in_shared_memory() const { return topology(config_.topology).in_shared_memory(); }

  void validate(const TaskConfig& task, const ClusterConfig& cluster) const {
    if (config_.balance && task.partition != Partition::kGlobal)
      throw ConfigError(
          "strategy.balance",
          fmt::format(
              "strategy.balance deals out each batch anew, but with task.partition = \"{}\" "
              "a worker has samples of its own; set task.partition = \"global\", or "
              "strategy.balance = false",
              word_of(task.partition)));
    if (topology(config_.topology).needs_racks && cluster.racks < 2)
      throw ConfigError("strategy.topology",
                        "strategy.topology = \"hierarchical\" needs racks, but cluster.racks = 1; "
                        "set cluster.racks to 2 or more, or choose another topology");
    if (in_shared_memory() && capabilities_of(cluster).declared_hosts &&
        cluster.nodes_per_host < cluster.workers)
      throw ConfigError(
          "strategy.topology",
          fmt::format("strategy.topology = \"direct\" sums in memory that all workers share, but "
                      "cluster.nodes_per_host = {} is less than cluster.workers = {}; put all "
                      "workers on one host, or choose another topology",
                      cluster.nodes_per_host, cluster.workers));
    if (in_shared_memory() && cluster.remote > 0)
      throw ConfigError(
          "strategy.topology",
          fmt::format("strategy.topology = \"direct\" sums in memory that all workers share, but "
                      "cluster.remote = {} of them are on other hosts; set cluster.remote = 0, or "
                      "choose another topology",
                      cluster.remote));
    if (config_.bucket_bytes < sizeof(float))
      throw ConfigError("strategy.bucket", "strategy.bucket must be at least 4 B");
  }

  size_t window_bytes(const PlanInput& input) const {
    if (!in_shared_memory()) return 0;
    const size_t count = input.architecture.parameter_count;
    return BucketExchange::exact_offset(count) +
           (input.task.deterministic ? count * sum_element_bytes(input.task) : 0);
  }

  // What the fastest worker needs for its larger share. Lanes are computed one at a time, so there
  // nobody needs more room than others.
  double balanced_memory(const PlanInput& input) const {
    if (!config_.balance || input.task.deterministic) return 0;
    const auto batch = static_cast<double>(input.task.global_batch);
    const double more = std::ceil(Balance::most_samples(input) - 1e-6) -
                        std::ceil(batch / static_cast<double>(input.cluster.workers));
    return more * (input.architecture.activation_bytes() + slope_bytes(input.architecture));
  }

  // The cost of each worker.
  std::vector<StepCost> step_costs(const PlanInput& input) const {
    std::vector<StepCost> costs(static_cast<size_t>(input.cluster.workers));
    double extra = 0;
    const size_t element = sum_element_bytes(input.task);
    const size_t count = input.architecture.parameter_count;
    const TopologyEntry& entry = topology(config_.topology);
    const auto buckets = input.task.deterministic
                             ? std::vector<Range>{{0, count}}
                             : make_buckets(input.architecture, config_.bucket_bytes);
    if (entry.rounds) {
      const Group everyone = make_group(input.cluster, 0);
      for (size_t node = 0; node < everyone.size(); ++node) {
        Group group = everyone;
        group.index = node;
        StepCost& cost = costs[node];
        for (const Range bucket : buckets) {
          const Volume volume = volume_sent(entry.rounds(group, bucket.size()));
          cost.bytes_sent += static_cast<double>(volume.elements * element);
          cost.messages += static_cast<double>(volume.messages);
        }
      }
      // What arrives waits in a scratch buffer until it is added.
      const double senders =
          entry.rounds == all_to_all ? static_cast<double>(everyone.size() - 1) : 1.0;
      const bool one_host = capabilities_of(input.cluster).one_machine;
      const size_t limit = one_host ? most_under_way(everyone.size()) : SIZE_MAX;
      for (const Range bucket : buckets)
        extra += senders * static_cast<double>(std::min(bucket.size() * element, limit));
    }
    if (input.task.deterministic) extra += static_cast<double>(count * element);
    for (StepCost& cost : costs) cost.extra_memory = extra;
    return costs;
  }

  AllReduceConfig config_;
};

}  // namespace

std::vector<Range> make_buckets(const Architecture& architecture, double bucket_bytes) {
  std::vector<Range> buckets;
  Range open{architecture.parameter_count, architecture.parameter_count};
  for (auto it = architecture.parameters.rbegin(); it != architecture.parameters.rend(); ++it) {
    open.begin = it->range.begin;
    if (static_cast<double>(open.size() * sizeof(float)) >= bucket_bytes) {
      buckets.push_back(open);
      open.end = open.begin;
    }
  }
  if (!open.empty()) buckets.push_back(open);
  return buckets;
}

std::vector<Variant> allreduce_variants() {
  std::vector<Variant> variants;
  for (const TopologyEntry& entry : topology_catalog())
    variants.push_back(
        {std::string(entry.name), {fmt::format("topology={}", entry.name), "balance=false"}});
  variants.push_back({"ring-balanced", {"topology=ring", "balance=true"}});
  return variants;
}

std::unique_ptr<Strategy> make_allreduce() { return std::make_unique<AllReduceStrategy>(); }

}  // namespace tutti
