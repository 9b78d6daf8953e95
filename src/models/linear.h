// [task] model = "linear" or "logistic": one affine layer.
#pragma once

#include "models/model_config.h"

namespace tutti {

struct LinearModel : ModelKind {
  double l2 = 0;  // l2/2 * |weights|^2 in each loss
  double l1 = 0;  // l1 * |weights|_1 in each loss

  void visit(Visitor& visitor) override;
  Architecture make(const std::vector<int64_t>& shape, int64_t classes) const override;
};

struct LogisticModel : ModelKind {
  double l2 = 0;  // l2/2 * |weights|^2 in each loss

  void visit(Visitor& visitor) override;
  Architecture make(const std::vector<int64_t>& shape, int64_t classes) const override;
};

}  // namespace tutti
