// Every kind of data there is, its settings and its reader.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/error.h"
#include "data/paths.h"
#include "data/readers.h"
#include "data/standardise.h"

namespace tutti {
namespace {

bool is_synthetic(const DataConfig& c) { return c.kind.starts_with("synthetic-"); }
bool is_package(const DataConfig& c) { return c.kind == "fashion-mnist" || c.kind == "cifar10"; }
bool is_file(const DataConfig& c) { return !is_synthetic(c) && !is_package(c); }
bool is_sparse_or_fann(const DataConfig& c) { return c.kind == "libsvm" || c.kind == "fann"; }
bool is_table(const DataConfig& c) { return c.kind == "csv" || is_sparse_or_fann(c); }

bool has_numbers(const DataConfig& c) { return is_table(c) || c.kind == "series"; }

// Numbers in files have units, and gradients follow the largest number, so standardising is the
// default. Sparse files are left alone, because their omitted zeros would not stay zero.
bool standardises(const DataConfig& c) {
  return has_numbers(c) && c.standardise.value_or(c.kind != "libsvm");
}

void visit_standardise(Visitor& v, DataConfig& c) {
  if (!has_numbers(c)) return;
  const bool preset = standardises(c);
  bool value = preset;
  v.field("standardise", value,
          c.kind == "libsvm"
              ? "give each feature mean 0 and deviation 1, which makes sparse samples dense"
              : "give each feature mean 0 and deviation 1, measured on the training samples");
  if (value != preset) c.standardise = value;  // unset, it follows the default of the kind
}

// Describes the features as they are in the file. Sparse samples are not made dense for that.
std::optional<FeatureSpread> look_at(const Source& source, const Splits& splits,
                                     const DataConfig& c) {
  constexpr int64_t kMostLookedAt = 1 << 20;
  const auto rows = source.dataset->with_sparse_rows();
  if (!has_numbers(c) || c.keys > 0 || source.dataset->sample_shape()[0] > kMostLookedAt) return {};
  return rows ? spread_of_rows(*rows, splits.train)
              : spread_of(moments_of(*source.dataset, splits.train));
}

void visit_file(Visitor& v, DataConfig& c) {
  if (is_file(c)) v.field("path", c.path, "the file; gzip is read directly");
  if (c.kind == "fashion-mnist")
    v.field("path", c.path,
            "directory of its four files; empty: where the Debian package puts them");
  if (c.kind == "cifar10")
    v.field("path", c.path, "directory of its files; empty: where scripts/fetch-cifar10 puts them");
  if (c.kind == "idx") v.field("labels_path", c.labels_path, "the file of labels");
  if (is_sparse_or_fann(c))
    v.field("test_path", c.test_path, "the file of the test set; empty: a share of the samples");
  if (c.kind == "csv") {
    v.field("label", c.label, "column to predict, by name or number from 0; empty: the last");
    v.choice("header", c.header, {"auto", "yes", "no"}, "whether the first line names the columns");
  }
  if (c.kind == "fann")
    v.field("label", c.label, "regression: output to predict, by number from 0; empty: the first");
  if (c.kind == "series") {
    v.field("label", c.label, "column to predict, by name");
    v.field("columns", c.columns, "columns that predict, names with commas; empty: the label's");
    v.field("horizon", c.horizon, {1, 1 << 20}, "how many rows ahead the prediction is");
  }
  if (c.kind == "libsvm")
    v.field(
        "keys", c.keys, {0, 9007199254740992},
        "indices are keys of a sparse model, from 1 to this, whatever their gaps; 0: they number "
        "features");
  if (is_table(c)) v.field("regression", c.regression, "predict a number, not a class");
  visit_standardise(v, c);
  if (c.kind == "text")
    v.field("context", c.context, {1, 4096}, "how many characters predict the next");
  if (c.kind == "tokens")
    v.field("context", c.context, {2, 4096}, "how many characters a sample has");
  if (c.kind == "series") v.field("context", c.context, {1, 4096}, "how many rows predict");
}

void visit_synthetic(Visitor& v, DataConfig& c) {
  v.field("samples", c.samples, {1, 4294967295}, "how many samples");
  if (c.kind == "synthetic-ratings") {
    v.field("users", c.users, {1, 1 << 24}, "how many users rate");
    v.field("items", c.items, {1, 1 << 24}, "how many items they rate");
    v.field("rank", c.rank, {1, 1024}, "of the matrix that the ratings are drawn from");
    v.field("noise", c.noise, kNotNegative, "deviation of the noise on the ratings");
    return;
  }
  v.field("features", c.features, {1, 1 << 24}, "features per sample");
  if (c.kind == "synthetic-classes") {
    v.field("classes", c.classes, {2, 1 << 20}, "how many classes");
    v.field("noise", c.noise, kNotNegative, "deviation of the samples from the centre of a class");
  } else {
    v.field("noise", c.noise, kNotNegative, "deviation of the noise on the targets");
    v.field("correlation", c.correlation, {0, 0.9999}, "between the features of a group");
    v.field("group", c.group, kAtLeastOne, "features in a group, one beside the other");
    v.field("informative", c.informative, kNotNegative,
            "features whose weight is not zero, spread evenly; 0: all");
  }
}

Source read_source(const DataConfig& c, uint64_t seed) {
  if (c.kind == "fashion-mnist") return read_fashion_mnist(c);
  if (c.kind == "cifar10") return read_cifar10(c);
  if (c.kind == "idx") return read_idx(c);
  if (c.kind == "csv") return read_csv(c);
  if (c.kind == "libsvm") return read_libsvm(c);
  if (c.kind == "ratings") return read_ratings(c);
  if (c.kind == "fann") return read_fann(c);
  if (c.kind == "series") return read_series(c);
  if (c.kind == "text") return read_text(c);
  if (c.kind == "tokens") return read_tokens(c);
  if (c.kind == "synthetic-linear") return make_synthetic_linear(c, seed);
  if (c.kind == "synthetic-classes") return make_synthetic_classes(c, seed);
  if (c.kind == "synthetic-ratings") return make_synthetic_ratings(c, seed);
  std::vector<std::string_view> names;
  for (const DataEntry& entry : data_catalog()) names.push_back(entry.name);
  throw ConfigError("task.data", fmt::format("there is no data '{}'; did you mean '{}'? See "
                                             "`tutti list data`",
                                             c.kind, nearest(c.kind, names)));
}

}  // namespace

const std::vector<DataEntry>& data_catalog() {
  static const std::vector<DataEntry> catalog = {
      {"fashion-mnist", "28x28 images of clothing, 10 classes, 60,000 + 10,000 (Debian package)"},
      {"idx", "images or vectors and labels in two IDX files, the format of MNIST"},
      {"cifar10", "32x32 colour images, 10 classes, 50,000 + 10,000 (scripts/fetch-cifar10)"},
      {"csv", "a table of numbers with a column to predict"},
      {"libsvm", "sparse rows `label index:value ...`, the format of LIBSVM"},
      {"ratings", "lines `user item rating`, by commas, tabs or spaces; for factorization"},
      {"fann", "inputs and outputs as text, the format of the FANN library"},
      {"series", "a time series in a CSV file: the rows before predict the next"},
      {"text", "plain text: the characters before predict the next"},
      {"tokens", "plain text as sequences that predict at every position; for transformer"},
      {"synthetic-linear", "normal features, target w.x + b + noise with known w and b"},
      {"synthetic-classes", "normal clouds around a centre per class"},
      {"synthetic-ratings", "entries of a matrix of low rank, with noise; for factorization"},
  };
  return catalog;
}

double validation_share(const DataConfig& c) {
  if (c.validation >= 0) return c.validation;
  return c.kind == "fashion-mnist" ? 1.0 / 12 : 0.1;
}

void visit(Visitor& v, DataConfig& c) {
  visit_file(v, c);
  if (is_synthetic(c)) visit_synthetic(v, c);
  c.validation = validation_share(c);
  v.field("validation", c.validation, kFraction,
          "share of the training samples kept for measuring the target");
  if (!is_package(c))
    v.field("test", c.test, kFraction, "share of all samples kept for the final quality");
  v.field("limit", c.limit, kNotNegative, "use only the first samples of each split; 0: all");
}

Data load_data(const DataConfig& config, uint64_t seed, const std::string& base_dir) {
  DataConfig c = config;
  c.path = complete_path(c.path, base_dir);
  c.labels_path = complete_path(c.labels_path, base_dir);
  c.test_path = complete_path(c.test_path, base_dir);
  const bool is_known = std::any_of(data_catalog().begin(), data_catalog().end(),
                                    [&](const DataEntry& entry) { return entry.name == c.kind; });
  if (is_known && is_file(c) && c.path.empty())
    throw ConfigError(
        "task.data.path",
        fmt::format("task.data.path is missing: {} data is read from a file", c.kind));
  Source source = read_source(c, seed);
  Splits splits = make_splits(source, c);
  if (!standardises(c)) {
    const auto spread = look_at(source, splits, c);
    return {std::move(source.dataset), std::move(splits), spread};
  }
  const Moments moments = moments_of(*source.dataset, splits.train);
  FeatureSpread spread = spread_of(moments);
  spread.standardised = true;
  return {standardised(std::move(source.dataset), moments), std::move(splits), spread};
}

std::vector<std::string> data_files(const DataConfig& c, const std::string& base_dir) {
  if (c.kind == "fashion-mnist") return fashion_mnist_files(complete_path(c.path, base_dir));
  if (c.kind == "cifar10") return cifar10_files(complete_path(c.path, base_dir));
  std::vector<std::string> files;
  for (const std::string& path : {c.path, c.labels_path, c.test_path})
    if (!path.empty() && !is_synthetic(c)) files.push_back(complete_path(path, base_dir));
  return files;
}

bool predicts_numbers(const DataConfig& c) {
  return c.kind == "series" || c.kind == "synthetic-linear" || c.kind == "ratings" ||
         c.kind == "synthetic-ratings" || (is_table(c) && c.regression);
}

}  // namespace tutti
