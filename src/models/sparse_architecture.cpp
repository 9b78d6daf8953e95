// Sparse models as architectures: one matrix with a row for each feature and one for the bias.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/error.h"
#include "core/random.h"
#include "data/dataset.h"
#include "models/common_keys.h"
#include "models/sparse_kinds.h"
#include "models/sparse_model.h"

namespace tutti {
namespace {

constexpr double kFactorDeviation = 0.1;
constexpr Bounds kRank{1, 1023};

void visit_l2_of_rows(Visitor& v, double& l2) {
  v.field("l2", l2, kNotNegative,
          "adds l2/2 * |weights|^2 to the loss of each sample, of the rows that it touches");
}

Architecture rows_of(std::string kind, double l2, int64_t features, int64_t width) {
  Architecture result;
  result.kind = std::move(kind);
  result.input = {features};
  result.l2 = l2;
  result.row_width = static_cast<size_t>(width);
  result.values_per_sample = static_cast<double>(features);
  result.parameter_count = static_cast<size_t>(features + 1) * result.row_width;
  result.parameters.push_back({.name = "rows.weight",
                               .shape = {features + 1, width},
                               .range = {0, result.parameter_count}});
  result.layers.push_back({.kind = LayerKind::kRows,
                           .name = "rows",
                           .input = {features},
                           .output = {},
                           .parameters = {0}});
  return result;
}

int64_t features_of(const std::vector<int64_t>& shape, const std::string& kind) {
  if (shape.size() != 1)
    throw ConfigError("task.model", fmt::format("model {} takes rows of features, but a sample is "
                                                "[{}]; use logistic or mlp",
                                                kind, fmt::join(shape, ", ")));
  return shape[0];
}

}  // namespace

std::shared_ptr<const Dataset> dataset_for(const ModelConfig& config,
                                           std::shared_ptr<const Dataset> dataset) {
  if (!is_sparse(config)) {
    constexpr int64_t kMostDense = 1 << 24;
    if (dataset->with_sparse_rows() && dataset->sample_shape()[0] > kMostDense)
      throw ConfigError("task.data.keys",
                        fmt::format("model {} takes dense samples, which with task.data.keys = {} "
                                    "no memory holds; use sparse_logistic or factorization",
                                    config.kind(), dataset->sample_shape()[0]));
    return dataset;
  }
  if (auto sparse = dataset->with_sparse_rows()) return sparse;
  throw ConfigError("task.model",
                    fmt::format("model {} takes sparse rows: data of kind libsvm (without "
                                "standardise, which fills them), ratings or synthetic-ratings; "
                                "for other data use logistic or linear",
                                config.kind()));
}

void SparseLogisticModel::visit(Visitor& v) { visit_l2_of_rows(v, l2); }

Architecture SparseLogisticModel::make(const std::vector<int64_t>& shape, int64_t classes) const {
  require_within("task.model.l2", l2, kNotNegative);
  if (classes == 0)
    throw ConfigError("task.model",
                      "model sparse_logistic predicts a class, but the data has numbers to "
                      "predict; use factorization, linear or mlp");
  const int64_t features = features_of(shape, "sparse_logistic");
  Architecture result = rows_of("sparse_logistic", l2, features, classes);
  result.outputs = classes;
  result.layers[0].output = {classes};
  result.layers[0].flops = 2.0 * static_cast<double>(features) * static_cast<double>(classes);
  return result;
}

void FactorizationModel::visit(Visitor& v) {
  v.field("rank", rank, kRank, "factors of each row, besides its bias");
  visit_l2_of_rows(v, l2);
}

Architecture FactorizationModel::make(const std::vector<int64_t>& shape, int64_t classes) const {
  require_within("task.model.l2", l2, kNotNegative);
  require_within("task.model.rank", rank, kRank);
  if (classes != 0)
    throw ConfigError("task.model",
                      fmt::format("model factorization predicts a number, but the data has {} "
                                  "classes; use sparse_logistic, or task.data.regression = true",
                                  classes));
  const int64_t features = features_of(shape, "factorization");
  Architecture result = rows_of("factorization", l2, features, rank + 1);
  result.parameters[0].init_deviation = kFactorDeviation;
  result.outputs = 1;
  result.classification = false;
  result.layers[0].output = {1};
  result.layers[0].flops = static_cast<double>(features) * (2.0 + 4.0 * static_cast<double>(rank));
  return result;
}

void touched_rows(const Architecture& architecture, const Batch& batch,
                  std::vector<uint64_t>& keys) {
  keys.assign(batch.rows.columns.begin(), batch.rows.columns.end());
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  if (batch.size() > 0) keys.push_back(architecture.rows() - 1);
}

// Biases start at zero; factors at random, since equal ones would stay equal.
void initial_row(const Architecture& architecture, uint64_t seed, uint64_t key,
                 std::span<float> row) {
  std::fill(row.begin(), row.end(), 0.0F);
  const double deviation = architecture.parameters[0].init_deviation;
  if (deviation == 0 || key + 1 == architecture.rows()) return;
  Random random(seed, Stream::kInit, static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32));
  for (float& value : row.subspan(1)) value = static_cast<float>(deviation * random.normal());
}

}  // namespace tutti
