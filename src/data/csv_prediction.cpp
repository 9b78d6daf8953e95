// Rows of a CSV file that a trained model is to predict.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "data/csv.h"
#include "data/csv_rows.h"
#include "data/input_file.h"
#include "data/prediction.h"

namespace tutti {
namespace {

using Row = std::vector<std::string>;

// The column of the answers, or none when a row has as many fields as there are features.
struct Columns {
  size_t features;
  bool labelled;
  size_t label;
};

Columns find_columns(const std::string& label, const std::string& path, const Row& first,
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
  if (const auto number = number_in(label); number && *number >= 0)
    columns.label = std::min(static_cast<size_t>(*number), first.size() - 1);
  const auto named = std::find(first.begin(), first.end(), label);
  if (!label.empty() && named != first.end())
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

}  // namespace

PredictionData read_rows_like(const DataDescription& trained_on, const std::string& path,
                              const std::string& label, CsvHeader naming) {
  CsvRows rows(path, InputFile(path).read_rest());
  const bool counted = naming == CsvHeader::kAuto && has_sklearn_header(rows);
  Row row;
  if (counted) rows.next(row);
  if (!rows.next(row)) throw DataError(fmt::format("{}: there are no rows", path));
  const Columns columns = find_columns(label, path, row, trained_on);
  // As the setting says; on "auto" a first row in which no feature is a number names the columns.
  bool header = naming != CsvHeader::kNo;
  for (size_t i = 0; i < row.size() && naming == CsvHeader::kAuto; ++i)
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

}  // namespace tutti
