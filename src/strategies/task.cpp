#include "strategies/task.h"

#include <algorithm>
#include <cmath>

#include "collectives/exact_sum.h"

namespace tutti {

void visit(Visitor& v, TaskConfig& c) {
  std::string data(c.data.kind()), model(c.model.kind());
  v.component(
      "data", data, names_of(data_catalog()),
      [&](Visitor& inner) {
        c.data.source.become(data_entry(data));
        visit(inner, c.data);
      },
      "what to learn from");
  v.component(
      "model", model, names_of(model_catalog()),
      [&](Visitor& inner) {
        c.model.design.become(model_entry(model));
        visit(inner, c.model);
      },
      "what to train");
  v.field("global_batch", c.global_batch, kAtLeastOne, "samples per step over all workers");
  v.field("epochs", c.epochs, {1, 1e6}, "passes over the training samples");
  v.field("max_steps", c.max_steps, kNotNegative,
          "stop after this many steps; 0: after the epochs");
  v.field("target", c.target, kNotNegative,
          "quality to reach on validation: accuracy, or squared error to get below; 0: none");
  v.field("stop_at_target", c.stop_at_target, "stop when the target is reached");
  v.field("eval_every", c.eval_every, kPositive, "epochs between measurements of quality");
  auto seed = static_cast<int64_t>(c.seed);
  v.field("seed", seed, kNotNegative,
          "decides initial values, order of samples, dropout and faults");
  c.seed = static_cast<uint64_t>(seed);
  choice(v, "partition", c.partition,
         "how samples are dealt to workers: from one shared order, in fixed shares, or in shares "
         "that change every epoch");
  v.field("deterministic", c.deterministic,
          "bitwise the same result for every topology, fabric and number of workers");
  v.field("lanes", c.lanes, {1, static_cast<double>(kMaxExactTerms)},
          "deterministic: into how many parts a global batch is cut, at least the workers");
}

double next_due(double every, double epoch) {
  constexpr double kRounding = 1e-9;   // what is reached but for this is reached
  constexpr double kCountable = 1e12;  // beyond, multiples lie nearer than steps ever do
  const double passed = std::floor((epoch + kRounding) / every);
  const double soonest = epoch + 2 * kRounding;
  return passed < kCountable ? std::max(every * (passed + 1), soonest) : soonest;
}

}  // namespace tutti
