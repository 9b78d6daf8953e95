// [optimizer] kind = "rmsprop".
#pragma once

#include "optimizers/optimizer.h"

namespace tutti {

struct RmspropRule : UpdateRule {
  double decay = 0.9;  // share of the mean of squares that is kept
  double eps = 1e-8;   // added to the root of the squares

  void visit(Visitor& visitor) override;
  std::unique_ptr<Optimizer> make(const Layout& layout, double weight_decay) const override;
};

}  // namespace tutti
