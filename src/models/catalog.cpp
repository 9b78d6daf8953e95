// Every kind of model there is. To add one: a file beside this one, and a line here.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/error.h"
#include "data/dataset.h"
#include "models/lenet.h"
#include "models/linear.h"
#include "models/mlp.h"
#include "models/resnet20.h"
#include "models/sparse_kinds.h"
#include "models/transformer.h"

namespace tutti {
namespace {

template <class Kind>
constexpr auto kModel = with_defaults<ModelKind, Kind>;

}  // namespace

const std::vector<ModelEntry>& model_catalog() {
  static const std::vector<ModelEntry> catalog = {
      {.name = "linear",
       .summary = "affine to one number, half the squared error; has a closed form",
       .title = "a linear model",
       .make = kModel<LinearModel>},
      {.name = "logistic",
       .summary = "affine and softmax, cross-entropy; convex",
       .title = "a logistic regression",
       .make = kModel<LogisticModel>},
      {.name = "mlp",
       .summary = "affine-relu for each hidden layer, then affine",
       .title = "an MLP",
       .make = kModel<MlpModel>},
      {.name = "lenet",
       .summary = "conv-relu-pool twice, affine-relu-dropout, affine-softmax; for images",
       .title = "LeNet",
       .make = kModel<LenetModel>},
      {.name = "resnet20",
       .summary = "residual blocks of convolutions with group or batch norm; for images",
       .title = "ResNet-20",
       .make = kModel<Resnet20Model>},
      {.name = "transformer",
       .summary = "causal attention; predicts the next code at each position; for tokens",
       .title = "a transformer",
       .make = kModel<TransformerModel>},
      {.name = "sparse_logistic",
       .summary = "logistic on rows that stay sparse; a batch touches its features only",
       .title = "a sparse logistic regression",
       .make = kModel<SparseLogisticModel>,
       .sparse = true},
      {.name = "factorization",
       .summary = "biases and products of factors; of ratings, matrix factorisation",
       .title = "a factorization",
       .make = kModel<FactorizationModel>,
       .sparse = true},
  };
  return catalog;
}

const ModelEntry& model_entry(std::string_view name) {
  if (const ModelEntry* entry = find_entry(model_catalog(), name)) return *entry;
  const std::vector<std::string_view> names = names_of(model_catalog());
  const std::string guess = nearest(name, names);
  throw ConfigError("task.model",
                    fmt::format("there is no model \"{}\"{}; known are {}", name,
                                guess.empty() ? "" : fmt::format(", did you mean \"{}\"?", guess),
                                fmt::join(names, ", ")));
}

Architecture make_architecture(const ModelConfig& config, const std::vector<int64_t>& sample_shape,
                               int64_t classes) {
  if (classes < 0 || classes == 1)
    throw ConfigError("task.data", fmt::format("the data has {} classes; a classification needs at "
                                               "least 2 (0 stands for a number to predict)",
                                               classes));
  return config.design->make(sample_shape, classes);
}

Architecture make_architecture(const ModelConfig& config, const Dataset& dataset) {
  Architecture result = make_architecture(config, dataset.sample_shape(), dataset.classes());
  if (result.positions != dataset.answers_per_sample())
    throw ConfigError("task.model",
                      fmt::format("model {} makes {} predictions for a sample, but the data has {} "
                                  "answers; transformer goes with data of kind tokens, and only "
                                  "with it",
                                  config.kind(), result.positions, dataset.answers_per_sample()));
  if (result.row_width > 0 &&
      dataset.values_per_sample() > 0) {  // until here, as if all were there
    result.values_per_sample = dataset.values_per_sample();
    for (Layer& layer : result.layers)
      layer.flops *= result.values_per_sample / static_cast<double>(layer.input[0]);
  }
  return result;
}

}  // namespace tutti
