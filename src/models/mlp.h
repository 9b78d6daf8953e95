// [task] model = "mlp".
#pragma once

#include "models/model_config.h"

namespace tutti {

struct MlpModel : ModelKind {
  std::vector<int64_t> hidden = {128};  // affine layers
  double dropout = 0;

  void visit(Visitor& visitor) override;
  Architecture make(const std::vector<int64_t>& shape, int64_t classes) const override;
};

}  // namespace tutti
