// Samples to learn from: a table of features with a label or a target each, and how they are split.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tutti {

// Samples of which most values are zero: only the others are kept, row by row.
struct SparseRows {
  std::vector<size_t> begins = {0};  // of each row in `columns` and `values`, and the end
  std::vector<uint64_t> columns;
  std::vector<float> values;
};

// A batch of samples, gathered. Classification fills `labels`, regression `targets`.
struct Batch {
  std::vector<float> features;     // size x features per sample, row by row
  SparseRows rows;                 // in their place where the data keeps its rows sparse
  std::vector<int32_t> labels;     // size x answers per sample
  std::vector<float> targets;
  std::vector<uint32_t> samples;   // which samples of the data set these are
  uint64_t step = 0;               // keys the dropout masks, together with `samples`
  size_t size() const { return samples.size(); }
};

using VisitBytes = std::function<void(std::span<const std::byte>)>;

class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual size_t size() const = 0;
  virtual std::vector<int64_t> sample_shape() const = 0;  // {784}, or {channels, height, width}
  virtual int64_t classes() const = 0;                    // 0 for regression (one target)
  virtual int64_t answers_per_sample() const { return 1; }  // sequences: one at each position
  // Replaces the contents of `batch` (its step excepted) with these samples.
  virtual void gather(std::span<const uint32_t> samples, Batch& batch) const = 0;
  virtual size_t memory_bytes() const = 0;
  // The same samples, gathered as Batch::rows in place of features. Nullptr: they are dense.
  virtual std::shared_ptr<const Dataset> with_sparse_rows() const { return nullptr; }
  // Values of a sample that are not zero, on average; 0: not known.
  virtual double values_per_sample() const { return 0; }
  // Visits the bytes of all samples and answers, in an order that is the same for equal data. A
  // data set may visit its own compact form instead of gathered batches.
  virtual void visit_contents(const VisitBytes& visit) const;
  // What the classes are called, in the order of their numbers.
  virtual std::vector<std::string> class_names() const {
    std::vector<std::string> names;
    for (int64_t i = 0; i < classes(); ++i) names.push_back(std::to_string(i));
    return names;
  }
  // Returns the names of the features, for data that numbers names as they occur (the users and
  // items of ratings). Empty when the features keep the numbers of the file.
  virtual std::vector<std::string> column_names() const { return {}; }
};

struct Splits {
  std::vector<uint32_t> train, validation, test;
};

// Describes the features in a file, over the training samples.
struct FeatureSpread {
  size_t count = 0;            // numbers in a sample
  double least = 0, most = 0;  // over all features
  double ratio = 1;            // largest deviation of a feature / smallest
  bool standardised = false;   // the model is trained on standardised values instead
};

struct Data {
  std::shared_ptr<const Dataset> dataset;
  Splits splits;
  std::optional<FeatureSpread> spread = {};  // for features that are numbers in a file
};

}  // namespace tutti
