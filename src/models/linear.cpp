#include "models/linear.h"

#include <fmt/format.h>

#include "core/error.h"
#include "models/builder.h"
#include "models/common_keys.h"

namespace tutti {

void LinearModel::visit(Visitor& v) {
  visit_l2(v, l2);
  v.field("l1", l1, kNotNegative, "adds l1 * |weights|_1 to the loss of each sample");
}

Architecture LinearModel::make(const std::vector<int64_t>& shape, int64_t classes) const {
  require_within("task.model.l2", l2, kNotNegative);
  require_within("task.model.l1", l1, kNotNegative);
  if (classes != 0)
    throw ConfigError("task.model", fmt::format("model linear predicts a number, but the data has "
                                                "{} classes; use logistic, mlp or lenet",
                                                classes));
  Architecture result = Builder("linear", shape).flatten().finish(0);
  result.l2 = l2;
  result.l1 = l1;
  return result;
}

void LogisticModel::visit(Visitor& v) { visit_l2(v, l2); }

Architecture LogisticModel::make(const std::vector<int64_t>& shape, int64_t classes) const {
  require_within("task.model.l2", l2, kNotNegative);
  if (classes == 0)
    throw ConfigError("task.model",
                      "model logistic predicts a class, but the data has numbers to "
                      "predict; use linear or mlp");
  Architecture result = Builder("logistic", shape).flatten().finish(classes);
  result.l2 = l2;
  return result;
}

}  // namespace tutti
