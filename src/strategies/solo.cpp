#include "strategies/solo.h"

#include <fmt/format.h>

#include <optional>

#include "core/bytes.h"
#include "core/error.h"
#include "strategies/synchronous.h"

namespace tutti {
namespace {

// Nobody to exchange with: what is ready is final.
class NoExchange : public GradientExchange {
 public:
  explicit NoExchange(Context& context) {
    if (context.task.deterministic) sum_.emplace(context, context.model.gradients());
  }
  void ready(uint64_t, Range) override {}
  void finish(uint64_t) override {}
  GradientSum& exact_sum() override { return *sum_; }
  void finish_exact(uint64_t) override {}

 private:
  std::optional<GradientSum> sum_;
};

class Solo : public Strategy {
 public:
  void visit(Visitor&) override {}

  Taxonomy taxonomy() const override {
    return {.structure = "single node",
            .parallelism = "none",
            .optimisation = "centralised",
            .timing = Timing::kSynchronous,
            .pattern = "none",
            .data = "all samples on one node",
            .stragglers = "there is nobody to wait",
            .communication = "nothing",
            .computation = "the whole batch"};
  }

  void fit(ClusterConfig& cluster) const override { shrink_cluster(cluster, 1); }

  Plan plan(const PlanInput& input) const override {
    Plan plan = begin_plan(input, taxonomy());
    if (input.cluster.workers != 1)
      throw ConfigError("cluster.workers",
                        fmt::format("strategy.kind = \"solo\" is one worker, but cluster.workers "
                                    "= {}; set it to 1, or choose another strategy",
                                    input.cluster.workers));
    plan.equivalence = synchronous_class(input.task);
    const size_t sum = input.architecture.parameter_count * sum_element_bytes(input.task);
    set_workers(plan, input,
                {.extra_memory = input.task.deterministic ? static_cast<double>(sum) : 0});
    return plan;
  }

  NodeResult run(Context& context) const override {
    NoExchange none(context);
    train_synchronously(context, none);
    return {context.members};
  }
};

}  // namespace

std::vector<Variant> solo_variants() { return {{"solo", {}}}; }

std::unique_ptr<Strategy> make_solo() { return std::make_unique<Solo>(); }

}  // namespace tutti
