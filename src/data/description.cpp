#include "data/description.h"

namespace tutti {

DataDescription describe(const DataConfig& config, const Dataset& dataset) {
  return {.kind = std::string(config.kind()),
          .sample_shape = dataset.sample_shape(),
          .classes = dataset.classes(),
          .class_names = dataset.class_names(),
          .answers_per_sample = dataset.answers_per_sample(),
          .features = feature_scales(dataset),
          .bytes = config.source->byte_scaling(),
          .columns = dataset.column_names()};
}

}  // namespace tutti
