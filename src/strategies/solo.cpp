#include "strategies/solo.h"

#include <fmt/format.h>

#include "core/bytes.h"
#include "core/error.h"
#include "strategies/synchronous.h"

namespace tutti {
namespace {

// Nobody to exchange with: what is ready is final.
class NoExchange : public GradientExchange {
 public:
  explicit NoExchange(size_t exact_sums) : sums_(exact_sums) {}
  void ready(uint64_t, Range) override {}
  void finish(uint64_t) override {}
  std::span<ExactSum> exact_sums() override { return sums_.span(); }
  void finish_exact(uint64_t) override {}

 private:
  Buffer<ExactSum> sums_;
};

class Solo : public Strategy {
 public:
  void visit(Visitor&) override {}

  void validate(const TaskConfig&, const ClusterConfig& cluster) const override {
    if (cluster.workers != 1)
      throw ConfigError("cluster.workers",
                        fmt::format("strategy.kind = \"solo\" is one worker, but cluster.workers "
                                    "= {}; set it to 1, or choose another strategy",
                                    cluster.workers));
  }

  Taxonomy taxonomy() const override {
    return {"single node", "none", "centralised", "synchronous", "none"};
  }

  std::string equivalence(const TaskConfig& task) const override { return synchronous_class(task); }

  void fit(ClusterConfig& cluster) const override { shrink_cluster(cluster, 1); }

  StepCost step_cost(const Plan& plan) const override {
    const auto parameters = static_cast<double>(plan.architecture.parameter_count);
    return {.extra_memory = plan.task.deterministic ? parameters * sizeof(ExactSum) : 0};
  }

  void run(Context& context) const override {
    NoExchange none(context.task.deterministic ? context.model.parameters().size() : 0);
    train_synchronously(context, none);
  }
};

}  // namespace

std::vector<Variant> solo_variants() { return {{"solo", {}}}; }

std::unique_ptr<Strategy> make_solo() { return std::make_unique<Solo>(); }

}  // namespace tutti
