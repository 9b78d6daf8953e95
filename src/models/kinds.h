// The larger models behind model_catalog(), one per file.
#pragma once

#include <cstdint>
#include <vector>

#include "models/architecture.h"

namespace tutti {

// Settings with defaults that depend on the kind.
std::vector<int64_t> channels_of(const ModelConfig& config);
double dropout_of(const ModelConfig& config);

Architecture make_resnet20(const ModelConfig& config, const std::vector<int64_t>& shape,
                           int64_t classes);
Architecture make_transformer(const ModelConfig& config, const std::vector<int64_t>& shape,
                              int64_t classes);
Architecture make_sparse_logistic(const ModelConfig& config, const std::vector<int64_t>& shape,
                                  int64_t classes);
Architecture make_factorization(const ModelConfig& config, const std::vector<int64_t>& shape,
                                int64_t classes);

}  // namespace tutti
