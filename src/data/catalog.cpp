// Every kind of data there is, its settings and its reader.
#include <fmt/format.h>

#include <filesystem>

#include "core/error.h"
#include "data/readers.h"

namespace tutti {
namespace {

bool is_synthetic(const DataConfig& c) { return c.kind.starts_with("synthetic-"); }
bool is_file(const DataConfig& c) { return c.kind == "csv" || c.kind == "text" || c.kind == "idx"; }

void visit_file(Visitor& v, DataConfig& c) {
  if (is_file(c)) v.field("path", c.path, "the file; gzip is read directly");
  if (c.kind == "fashion-mnist")
    v.field("path", c.path,
            "directory of its four files; empty: where the Debian package puts them");
  if (c.kind == "idx") v.field("labels_path", c.labels_path, "the file of labels");
  if (c.kind == "csv") {
    v.field("label", c.label, "column to predict, by name or number from 0; empty: the last");
    v.choice("header", c.header, {"auto", "yes", "no"}, "whether the first line names the columns");
    v.field("regression", c.regression, "the label is a number to predict, not a class");
  }
  if (c.kind == "text")
    v.field("context", c.context, {1, 4096}, "how many characters predict the next");
}

void visit_synthetic(Visitor& v, DataConfig& c) {
  v.field("samples", c.samples, {1, 4294967295}, "how many samples");
  v.field("features", c.features, {1, 1 << 24}, "features per sample");
  if (c.kind == "synthetic-classes") {
    v.field("classes", c.classes, {2, 1 << 20}, "how many classes");
    v.field("noise", c.noise, kNotNegative, "deviation of the samples from the centre of a class");
  } else {
    v.field("noise", c.noise, kNotNegative, "deviation of the noise on the targets");
  }
}

std::string complete(const std::string& path, const std::string& base_dir) {
  return path.empty() ? path : (std::filesystem::path(base_dir) / path).string();
}

}  // namespace

const std::vector<DataEntry>& data_catalog() {
  static const std::vector<DataEntry> catalog = {
      {"fashion-mnist", "28x28 images of clothing, 10 classes, 60,000 + 10,000 (Debian package)"},
      {"idx", "images or vectors and labels in two IDX files, the format of MNIST"},
      {"csv", "a table of numbers with a column to predict"},
      {"text", "plain text: the characters before predict the next"},
      {"synthetic-linear", "normal features, target w.x + b + noise with known w and b"},
      {"synthetic-classes", "normal clouds around a centre per class"},
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
  if (c.kind != "fashion-mnist")
    v.field("test", c.test, kFraction, "share of all samples kept for the final quality");
  v.field("limit", c.limit, kNotNegative, "use only the first samples of each split; 0: all");
}

Data load_data(const DataConfig& config, uint64_t seed, const std::string& base_dir) {
  DataConfig c = config;
  if (is_file(c) && c.path.empty())
    throw ConfigError(
        "task.data.path",
        fmt::format("task.data.path is missing: {} data is read from a file", c.kind));
  c.path = complete(c.path, base_dir);
  c.labels_path = complete(c.labels_path, base_dir);
  Source source;
  if (c.kind == "fashion-mnist") source = read_fashion_mnist(c);
  if (c.kind == "idx") source = read_idx(c);
  if (c.kind == "csv") source = read_csv(c);
  if (c.kind == "text") source = read_text(c);
  if (c.kind == "synthetic-linear") source = make_synthetic_linear(c, seed);
  if (c.kind == "synthetic-classes") source = make_synthetic_classes(c, seed);
  if (!source.dataset) {
    std::vector<std::string_view> names;
    for (const DataEntry& entry : data_catalog()) names.push_back(entry.name);
    throw ConfigError("task.data", fmt::format("there is no data '{}'; did you mean '{}'? See "
                                               "`tutti list data`",
                                               c.kind, nearest(c.kind, names)));
  }
  Splits splits = make_splits(source, c);
  return {std::move(source.dataset), std::move(splits)};
}

}  // namespace tutti
