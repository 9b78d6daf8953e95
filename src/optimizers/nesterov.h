// [optimizer] kind = "nesterov".
#pragma once

#include "optimizers/optimizer.h"

namespace tutti {

struct NesterovRule : UpdateRule {
  double momentum = 0.9;  // share of the velocity that is kept

  void visit(Visitor& visitor) override;
  std::unique_ptr<Optimizer> make(const Layout& layout, double decay) const override;
};

}  // namespace tutti
