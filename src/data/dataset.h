// Samples to learn from: a table of features with a label or a target each, and how they are split.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/schema.h"

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

// [task] data = "fashion-mnist", or a table with a kind and these settings.
struct DataConfig {
  std::string kind = "fashion-mnist";
  std::string path;         // the file (gzip is read directly); fashion-mnist and cifar10: the
                            // directory of their files
  std::string labels_path;  // idx: the file of labels
  std::string test_path;    // libsvm, fann: the file of the test set; empty: a share of the samples
  std::string label;        // csv: column of the label, by name or number from 0; default the last.
                            // series: name of the column to predict. fann: number of the output
  std::string header = "auto";  // csv: whether the first line names the columns: auto | yes | no
  std::string columns;      // series: the columns that predict, by name; default the label's
  bool regression = false;  // csv, libsvm, fann: the label is a number to predict, not a class
  // csv, libsvm, fann, series: whether to standardise features. Empty means the default of the
  // kind: true for all but libsvm, where it would make sparse samples dense.
  std::optional<bool> standardise;
  int64_t context = 8;      // text: characters that predict the next; tokens: characters in a
                            // sample; series: rows that predict
  int64_t horizon = 1;      // series: how many rows ahead
  int64_t samples = 4096;   // synthetic: how many
  int64_t features = 32;    // synthetic: how many
  int64_t classes = 10;     // synthetic-classes: how many
  double noise = 0.1;       // synthetic: deviation of the targets, or from the centre of a class
  double correlation = 0;   // synthetic-linear: between the features of a group
  int64_t group = 8;        // synthetic-linear: features in a group
  int64_t informative = 0;  // synthetic-linear: features that matter; 0: all
  int64_t users = 200;      // synthetic-ratings: how many
  int64_t items = 100;      // synthetic-ratings: how many
  int64_t rank = 4;         // synthetic-ratings: of the matrix that they are drawn from
  int64_t keys = 0;         // libsvm: indices are keys up to this; 0: they number features
  int64_t limit = 0;        // use only the first samples of each split; 0: all
  // Share of the training samples kept for measuring the target. Negative: the default of the kind,
  // 5,000 of 60,000 for fashion-mnist and a tenth for the others.
  double validation = -1;
  double test = 0.1;        // share kept for the final quality where the data brings no test set
};

void visit(Visitor& visitor, DataConfig& config);  // all keys but `kind`

struct DataEntry {
  std::string_view name;
  std::string_view summary;
};
const std::vector<DataEntry>& data_catalog();

// Reads (or generates) the data. `base_dir` is where relative paths start. Synthetic data depends
// on `seed`; the split is the same for every seed, so that runs with several seeds compare. Throws
// DataError or ConfigError naming file and key.
Data load_data(const DataConfig& config, uint64_t seed, const std::string& base_dir);

// The files that load_data would read, whether they exist or not.
std::vector<std::string> data_files(const DataConfig& config, const std::string& base_dir);
// Whether the data is a regression, as far as the settings tell without reading it.
bool predicts_numbers(const DataConfig& config);

// The weights (features, then bias) that generated a "synthetic-linear" set, for closed-form tests.
std::vector<float> synthetic_optimum(const DataConfig& config, uint64_t seed);

}  // namespace tutti
