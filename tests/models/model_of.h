// A model with some of its settings, for tests: model_of("mlp", {{"hidden", {4}}}).
#pragma once

#include "models/model_config.h"
#include "tests/core/field_setter.h"

namespace tutti {

inline ModelConfig model_of(std::string_view kind, const FieldValues& fields = {}) {
  return configured<ModelConfig>(kind, fields);
}

}  // namespace tutti
