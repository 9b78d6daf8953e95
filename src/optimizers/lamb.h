// [optimizer] kind = "lamb".
#pragma once

#include "optimizers/adam.h"

namespace tutti {

struct LambRule : UpdateRule {
  AdamSettings moments;

  void visit(Visitor& visitor) override { moments.visit(visitor); }
  std::unique_ptr<Optimizer> make(const Layout& layout, double decay) const override;
  OptimizerCost extra_cost(const Layout& layout) const override;
};

}  // namespace tutti
