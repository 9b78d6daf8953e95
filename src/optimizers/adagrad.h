// [optimizer] kind = "adagrad".
#pragma once

#include "optimizers/optimizer.h"

namespace tutti {

struct AdagradRule : UpdateRule {
  double eps = 1e-8;  // added to the root of the squares

  void visit(Visitor& visitor) override;
  std::unique_ptr<Optimizer> make(const Layout& layout, double decay) const override;
};

// The key of all rules that divide by a root.
void visit_eps(Visitor& visitor, double& eps);

}  // namespace tutti
