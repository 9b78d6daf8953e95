// The readers behind data_catalog(), one per file. Each returns its samples and how they may be
// split; splits.cpp does the rest.
#pragma once

#include "data/dataset.h"
#include "data/table.h"

namespace tutti {

struct Source {
  std::shared_ptr<const Dataset> dataset;
  size_t test_from = 0;     // the samples from here on are a test set of its own; size(): none
  bool sequential = false;  // neighbours overlap: split into contiguous blocks
};

// `path` in the settings is already complete: load_data has put the base directory before it.
// `classes`, if given, are those of the training data, for prediction. Otherwise classes are
// numbered as they occur.
using ClassNames = std::vector<std::string>;
Source read_libsvm(const DataConfig& config, const ClassNames* classes = nullptr);
Source read_fann(const DataConfig& config, const ClassNames* classes = nullptr);
Source read_fashion_mnist(const DataConfig& config);
Source read_idx(const DataConfig& config);
Source read_csv(const DataConfig& config);
Source read_ratings(const DataConfig& config);
Source read_series(const DataConfig& config);
Source read_text(const DataConfig& config);
Source read_tokens(const DataConfig& config);
Source read_cifar10(const DataConfig& config);
// Reads ratings for prediction, with the users and items of the training data (its column names).
// `rated` is false, and the targets are 0, when no line has a rating.
std::shared_ptr<const Dataset> read_ratings_like(const DataConfig& config,
                                                 const std::vector<std::string>& columns,
                                                 bool& rated);
Source make_synthetic_linear(const DataConfig& config, uint64_t seed);
Source make_synthetic_classes(const DataConfig& config, uint64_t seed);
Source make_synthetic_ratings(const DataConfig& config, uint64_t seed);

// Their files in a directory; empty: where they usually are.
std::vector<std::string> fashion_mnist_files(const std::string& directory);
std::vector<std::string> cifar10_files(const std::string& directory);
Scaling cifar10_scaling();

// A text in the vocabulary (class names) of another one, for prediction.
std::shared_ptr<const Dataset> read_text_like(const DataConfig& config,
                                              const std::vector<std::string>& names);
std::shared_ptr<const Dataset> read_tokens_like(const DataConfig& config,
                                                const std::vector<std::string>& names);

// Part of the training samples for validation, part of all for the test where there is none. The
// same for every seed of a job, so that runs that differ in their seed measure the same thing.
Splits make_splits(const Source& source, const DataConfig& config);

// The share of training samples kept for validation: the setting, or the default of the kind.
double validation_share(const DataConfig& config);

}  // namespace tutti
