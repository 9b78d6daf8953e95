#include "data/prediction.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "data/csv_rows.h"
#include "data/idx.h"
#include "data/input_file.h"
#include "data/readers.h"
#include "data/standardise.h"

namespace tutti {
namespace {

using Row = std::vector<std::string>;

// Answers that nobody looks at: the table needs one per sample.
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

PredictionData read_images(const std::string& path, const std::string& labels_path,
                           const DataDescription& trained_on) {
  IdxArray array = read_idx_array(path);
  if (idx_sample_shape(array) != trained_on.sample_shape)
    throw DataError(
        fmt::format("{}: its samples have another shape than those that the model was "
                    "trained on",
                    path));
  Answers answers = no_answers(trained_on, static_cast<size_t>(array.extents[0]));
  if (!labels_path.empty()) {
    answers.labels = read_idx_labels(labels_path, array.extents[0]);
    for (const int32_t label : answers.labels)
      if (label >= answers.classes)
        throw DataError(
            fmt::format("{}: label {} is not one of the {} classes that the model was "
                        "trained on",
                        labels_path, label, answers.classes));
  }
  return {make_idx_table(path, std::move(array), trained_on.bytes, std::move(answers)),
          !labels_path.empty()};
}

// The column of the answers, or none when a row has as many fields as there are features.
struct Columns {
  size_t features;
  bool labelled;
  size_t label;
};

Columns columns_of(const DataConfig& config, const std::string& path, const Row& first,
                   const DataDescription& trained_on) {
  Columns columns{elements_of(trained_on.sample_shape), false, 0};
  if (first.size() == columns.features) return columns;
  if (first.size() != columns.features + 1)
    throw DataError(
        fmt::format("{}: there are {} columns, but the model was trained on {} features "
                    "(and a label, which may be left out)",
                    path, first.size(), columns.features));
  columns.labelled = true;
  columns.label = first.size() - 1;
  if (const auto number = number_in(config.label); number && *number >= 0)
    columns.label = std::min(static_cast<size_t>(*number), first.size() - 1);
  const auto named = std::find(first.begin(), first.end(), config.label);
  if (!config.label.empty() && named != first.end())
    columns.label = static_cast<size_t>(named - first.begin());
  // In a file with the features' names the label is what is left, wherever it stands.
  std::vector<size_t> others;
  for (size_t i = 0; i < first.size(); ++i)
    if (std::find(trained_on.columns.begin(), trained_on.columns.end(), first[i]) ==
        trained_on.columns.end())
      others.push_back(i);
  if (others.size() == 1) columns.label = others.front();
  return columns;
}

// The field that holds each feature: by name where both files have names, else in their order.
std::vector<size_t> fields_of_features(const std::string& path, const Row& header,
                                       const Columns& columns, const DataDescription& trained_on) {
  std::vector<size_t> fields;
  for (size_t i = 0; i < columns.features; ++i) {
    if (header.empty() || trained_on.columns.empty()) {
      fields.push_back(i + (columns.labelled && i >= columns.label ? 1 : 0));
      continue;
    }
    const std::string& name = trained_on.columns[i];
    const auto found = std::find(header.begin(), header.end(), name);
    if (found == header.end())
      throw DataError(
          fmt::format("{}: there is no column {}, which the model was trained on; its columns are "
                      "{}",
                      path, in_quotes(name), fmt::join(header, ", ")));
    fields.push_back(static_cast<size_t>(found - header.begin()));
  }
  return fields;
}

int32_t class_of(const std::string& text, const std::vector<std::string>& names,
                 const std::string& path, size_t line) {
  const auto found = std::find(names.begin(), names.end(), text);
  if (found == names.end())
    throw DataError(fmt::format("{}, line {}: {} is not a class that the model was trained on",
                                path, line, in_quotes(text)));
  return static_cast<int32_t>(found - names.begin());
}

PredictionData read_rows(const DataConfig& config, const std::string& path,
                         const DataDescription& trained_on) {
  CsvRows rows(path, InputFile(path).read_rest());
  const bool counted = config.header == "auto" && has_sklearn_header(rows);
  Row row;
  if (counted) rows.next(row);
  if (!rows.next(row)) throw DataError(fmt::format("{}: there are no rows", path));
  const Columns columns = columns_of(config, path, row, trained_on);
  // As the setting says; on "auto" a first row in which no feature is a number names the columns.
  bool header = config.header != "no";
  for (size_t i = 0; i < row.size() && config.header == "auto"; ++i)
    if (!(columns.labelled && i == columns.label) && number_in(row[i])) header = false;
  const std::vector<size_t> fields =
      fields_of_features(path, header && !counted ? row : Row(), columns, trained_on);
  if (!header) rows.rewind();
  if (counted) rows.next(row);
  std::vector<float> features;
  Answers answers = no_answers(trained_on, 0);
  for (size_t count = 0; rows.next(row); ++count) {
    if (row.size() != columns.features + (columns.labelled ? 1 : 0))
      throw DataError(
          fmt::format("{}, line {}: there are {} fields", path, rows.line(), row.size()));
    const auto number_at = [&](size_t i) {
      const auto number = number_in(row[i]);
      if (!number || !std::isfinite(static_cast<float>(*number)))
        throw DataError(fmt::format("{}, line {}, column {}: {} is not a finite number", path,
                                    rows.line(), i, in_quotes(row[i])));
      return static_cast<float>(*number);
    };
    for (const size_t field : fields) features.push_back(number_at(field));
    if (!columns.labelled) continue;
    if (answers.classes > 0)
      answers.labels.push_back(class_of(row[columns.label], answers.names, path, rows.line()));
    else
      answers.targets.push_back(number_at(columns.label));
  }
  const size_t count = features.size() / columns.features;
  if (count == 0) throw DataError(fmt::format("{}: there are no rows below the header", path));
  if (!columns.labelled) answers = no_answers(trained_on, count);
  return {make_table(trained_on.sample_shape, std::move(features), std::move(answers)),
          columns.labelled};
}

// The file has the kind of the training data and is read by the same reader. A libsvm or fann file
// need not contain every class and feature.
PredictionData read_again(const DataConfig& config, const std::string& path,
                          const DataDescription& trained_on) {
  DataConfig c = config;
  c.path = path;
  c.test_path.clear();
  if (c.kind == "libsvm") c.keys = trained_on.sample_shape.at(0);
  if (c.kind == "cifar10" && trained_on.bytes != cifar10_scaling())
    throw DataError(
        fmt::format("{}: the model was trained on pixels of another scale than this version of "
                    "tutti gives them; predict with the version that trained it",
                    path));
  std::shared_ptr<const Dataset> dataset =
      config.kind == "libsvm"    ? read_libsvm(c, &trained_on.class_names).dataset
      : config.kind == "fann"    ? read_fann(c, &trained_on.class_names).dataset
      : config.kind == "cifar10" ? read_cifar10(c).dataset
                                 : read_series(c).dataset;
  return {std::move(dataset), true};
}

PredictionData read_ratings_again(const DataConfig& config, const DataDescription& trained_on) {
  PredictionData data;
  data.dataset = read_ratings_like(config, trained_on.columns, data.labelled);
  return data;
}

PredictionData read_plain(const DataConfig& config, const std::string& path,
                          const std::string& labels_path, const DataDescription& trained_on) {
  DataConfig c = config;
  c.path = path;
  if (c.kind == "fashion-mnist" || c.kind == "idx")
    return read_images(path, labels_path, trained_on);
  if (c.kind == "text") return {read_text_like(c, trained_on.class_names), true};
  if (c.kind == "tokens") return {read_tokens_like(c, trained_on.class_names), true};
  if (c.kind == "libsvm" || c.kind == "fann" || c.kind == "series" || c.kind == "cifar10")
    return read_again(config, path, trained_on);
  if (c.kind == "ratings") return read_ratings_again(c, trained_on);
  if (c.kind == "synthetic-ratings")
    throw DataError(
        fmt::format("{}: users and items of synthetic-ratings have no names that a file could "
                    "have; leave --data out to predict the test samples",
                    path));
  return read_rows(config, path, trained_on);  // csv, and tables like the synthetic ones
}

}  // namespace

PredictionData load_for_prediction(const DataConfig& config, const std::string& path,
                                   const std::string& labels_path,
                                   const DataDescription& trained_on) {
  PredictionData data = read_plain(config, path, labels_path, trained_on);
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
