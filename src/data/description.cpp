#include "data/description.h"

#include "data/idx.h"

namespace tutti {

namespace {

bool holds_bytes(const std::string& kind) {
  return kind == "idx" || kind == "fashion-mnist" || kind == "cifar10";
}

}  // namespace

DataDescription describe(const DataConfig& config, const Dataset& dataset) {
  return {.kind = config.kind,
          .sample_shape = dataset.sample_shape(),
          .classes = dataset.classes(),
          .class_names = dataset.class_names(),
          .answers_per_sample = dataset.answers_per_sample(),
          .features = feature_scales(dataset),
          .bytes = holds_bytes(config.kind) ? byte_scaling(config.kind) : Scaling{},
          .columns = dataset.column_names()};
}

}  // namespace tutti
