// [optimizer] kind = "momentum".
#pragma once

#include "optimizers/optimizer.h"

namespace tutti {

struct MomentumRule : UpdateRule {
  double momentum = 0.9;  // share of the velocity that is kept

  void visit(Visitor& visitor) override;
  std::unique_ptr<Optimizer> make(const Layout& layout, double decay) const override;
};

// The key of all rules whose velocity contains the rate.
void visit_momentum(Visitor& visitor, double& momentum);

}  // namespace tutti
