// [task] model: a kind of model out of the catalog with its settings, and its layers on some data.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "core/chosen.h"
#include "models/architecture.h"

namespace tutti {

class Dataset;

// One kind of model with its settings.
class ModelKind {
 public:
  virtual ~ModelKind() = default;
  virtual void visit(Visitor& visitor) = 0;  // its keys, `kind` excepted
  // The layers for samples of this shape; `classes` is 0 where a number is predicted. Throws
  // ConfigError when the model cannot take such samples, or a setting is out of its bounds.
  virtual Architecture make(const std::vector<int64_t>& shape, int64_t classes) const = 0;
  // True when samples of a batch influence one another.
  virtual bool normalises_batches() const { return false; }
};

struct ModelEntry {
  using Kind = ModelKind;
  std::string_view name;
  std::string_view summary;
  std::string_view title;  // in a sentence
  Cloned<ModelKind> (*make)();
  bool sparse = false;  // its parameters are rows that a batch touches few of
};
const std::vector<ModelEntry>& model_catalog();
// Throws ConfigError with the nearest name when there is no such model.
const ModelEntry& model_entry(std::string_view name);

// [task] model = "lenet", or a table with a kind and its settings.
struct ModelConfig {
  explicit ModelConfig(std::string_view kind = "lenet") : design(model_entry(kind)) {}
  std::string_view kind() const { return design.name(); }

  Chosen<ModelEntry> design;
};

// The keys that the kind uses, `kind` excepted.
inline void visit(Visitor& visitor, ModelConfig& config) { config.design->visit(visitor); }

// Throws ConfigError when the model cannot take such samples.
Architecture make_architecture(const ModelConfig& config, const std::vector<int64_t>& sample_shape,
                               int64_t classes);
// The same for a data set; also refuses models that predict more or less often than it has answers.
Architecture make_architecture(const ModelConfig& config, const Dataset& dataset);
// The data as the model takes it: with its rows kept sparse for a sparse one. Throws ConfigError
// when they are dense.
std::shared_ptr<const Dataset> dataset_for(const ModelConfig& config,
                                           std::shared_ptr<const Dataset> dataset);
inline bool is_sparse(const ModelConfig& config) { return config.design.entry().sparse; }
inline bool normalises_batches(const ModelConfig& config) {
  return config.design->normalises_batches();
}

}  // namespace tutti
