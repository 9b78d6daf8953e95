// [task] model = "resnet20".
#pragma once

#include "models/model_config.h"

namespace tutti {

enum class NormKind { kGroup, kBatch };
constexpr auto words(NormKind) { return WordList<2>{"group", "batch"}; }

struct Resnet20Model : ModelKind {
  std::vector<int64_t> channels = {16, 32, 64};  // of the stages
  int64_t blocks = 3;                            // in each stage
  NormKind norm = NormKind::kGroup;
  int64_t groups = 8;        // group norm: of channels normalised together
  int64_t ghost_batch = 16;  // batch norm: samples normalised together

  void visit(Visitor& visitor) override;
  Architecture make(const std::vector<int64_t>& shape, int64_t classes) const override;
  bool normalises_batches() const override { return norm == NormKind::kBatch; }
};

}  // namespace tutti
