// [optimizer] kind = "adamw".
#pragma once

#include "optimizers/adam.h"

namespace tutti {

struct AdamwRule : UpdateRule {
  AdamSettings moments;

  void visit(Visitor& visitor) override { moments.visit(visitor); }
  std::unique_ptr<Optimizer> make(const Layout& layout, double decay) const override;
};

}  // namespace tutti
