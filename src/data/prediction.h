// Samples that a trained model is to predict: like its training data, with or without answers.
#pragma once

#include "data/description.h"

namespace tutti {

struct PredictionData {
  std::shared_ptr<const Dataset> dataset;
  bool labelled = false;  // the answers in it are real, so quality can be measured
};

// Reads `path` as the same kind of data as `config`, with the classes, names and scales of what the
// model was trained on. A CSV file may leave out the label column, ratings the rating; IDX images
// may come without `labels_path`.
PredictionData load_for_prediction(const DataConfig& config, const std::string& path,
                                   const std::string& labels_path,
                                   const DataDescription& trained_on);

}  // namespace tutti
