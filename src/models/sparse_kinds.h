// [task] model = "sparse_logistic" or "factorization": rows that a batch touches few of.
#pragma once

#include "models/model_config.h"

namespace tutti {

struct SparseLogisticModel : ModelKind {
  double l2 = 0;  // l2/2 * |weights|^2 in each loss, of the rows that a sample touches

  void visit(Visitor& visitor) override;
  Architecture make(const std::vector<int64_t>& shape, int64_t classes) const override;
};

struct FactorizationModel : ModelKind {
  int64_t rank = 7;  // factors of a row, besides its bias
  double l2 = 0;     // as that of SparseLogisticModel

  void visit(Visitor& visitor) override;
  Architecture make(const std::vector<int64_t>& shape, int64_t classes) const override;
};

}  // namespace tutti
