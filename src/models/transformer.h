// [task] model = "transformer".
#pragma once

#include "models/model_config.h"

namespace tutti {

struct TransformerModel : ModelKind {
  int64_t width = 64;  // of what stands for a character
  int64_t depth = 2;   // blocks of attention and affine layers
  int64_t heads = 4;   // of each attention
  double dropout = 0;

  void visit(Visitor& visitor) override;
  Architecture make(const std::vector<int64_t>& shape, int64_t classes) const override;
};

}  // namespace tutti
