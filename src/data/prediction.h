// Samples that a trained model is to predict: like its training data, with or without answers.
#pragma once

#include "data/description.h"

namespace tutti {

struct PredictionData {
  std::shared_ptr<const Dataset> dataset;
  bool labelled = false;  // the answers in it are real, so quality can be measured
};

// Answers that nobody looks at: a table needs one per sample.
Answers no_answers(const DataDescription& trained_on, size_t count);

// Reads `path` as the kind of data in `config`, with the classes, names and scales of the training
// data. A CSV file may leave out the label column, and ratings the rating. IDX images may come
// without `labels_path`.
PredictionData load_for_prediction(const DataConfig& config, const std::string& path,
                                   const std::string& labels_path,
                                   const DataDescription& trained_on);

}  // namespace tutti
