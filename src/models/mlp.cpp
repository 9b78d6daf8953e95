#include "models/mlp.h"

#include "models/builder.h"
#include "models/common_keys.h"

namespace tutti {

void MlpModel::visit(Visitor& v) {
  visit_hidden(v, hidden, "mlp");
  visit_dropout(v, dropout);
}

Architecture MlpModel::make(const std::vector<int64_t>& shape, int64_t classes) const {
  require_within("task.model.hidden", hidden, kWidth);
  require_within("task.model.dropout", dropout, kDropoutShare);
  Builder builder("mlp", shape);
  builder.flatten();
  for (int64_t width : hidden) builder.affine(width).relu().dropout(dropout);
  return builder.finish(classes);
}

}  // namespace tutti
