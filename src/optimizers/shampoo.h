// [optimizer] kind = "shampoo".
#pragma once

#include "optimizers/optimizer.h"

namespace tutti {

struct ShampooRule : UpdateRule {
  double eps = 1e-8;                 // times the identity: the second moments at the start
  int64_t root_every = 20;           // steps between two computations of the preconditioners
  int64_t largest_dimension = 1024;  // beyond this only the diagonal is kept
  bool graft = true;                 // a tensor's step is as long as that of plain SGD

  void visit(Visitor& visitor) override;
  std::unique_ptr<Optimizer> make(const Layout& layout, double decay) const override;
  // What it holds and computes depends on shapes and not on the number of values alone.
  OptimizerCost extra_cost(const Layout& layout) const override;
};

}  // namespace tutti
