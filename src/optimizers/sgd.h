// [optimizer] kind = "sgd".
#pragma once

#include "optimizers/optimizer.h"

namespace tutti {

struct SgdRule : UpdateRule {
  std::unique_ptr<Optimizer> make(const Layout& layout, double decay) const override;
};

}  // namespace tutti
