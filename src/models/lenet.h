// [task] model = "lenet".
#pragma once

#include "models/model_config.h"

namespace tutti {

struct LenetModel : ModelKind {
  std::vector<int64_t> channels = {20, 50};  // of the two convolutions
  std::vector<int64_t> hidden = {500};       // affine layers
  double dropout = 0.5;

  void visit(Visitor& visitor) override;
  Architecture make(const std::vector<int64_t>& shape, int64_t classes) const override;
};

}  // namespace tutti
