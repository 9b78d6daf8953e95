#include "data/prediction.h"

#include <fmt/format.h>

#include "core/error.h"
#include "data/standardise.h"

namespace tutti {

Answers no_answers(const DataDescription& trained_on, size_t count) {
  Answers answers;
  answers.classes = trained_on.classes;
  answers.names = trained_on.class_names;
  if (answers.classes > 0)
    answers.labels.resize(count);
  else
    answers.targets.resize(count);
  return answers;
}

PredictionData load_for_prediction(const DataConfig& config, const std::string& path,
                                   const std::string& labels_path,
                                   const DataDescription& trained_on) {
  PredictionData data = config.source->read_like(trained_on, path, labels_path);
  if (data.dataset->sample_shape() != trained_on.sample_shape ||
      data.dataset->classes() != trained_on.classes ||
      data.dataset->class_names() != trained_on.class_names ||
      data.dataset->answers_per_sample() != trained_on.answers_per_sample)
    throw DataError(
        fmt::format("{}: has other features or classes than the data that the model "
                    "was trained on",
                    path));
  data.dataset = standardised_by(trained_on.features, std::move(data.dataset));
  return data;
}

}  // namespace tutti
