// A CSV table: numbers to learn from and one column to predict. Classes are the distinct texts of
// that column.
#include "data/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "core/error.h"
#include "data/classes.h"
#include "data/common_keys.h"
#include "data/csv_rows.h"
#include "data/input_file.h"
#include "data/prediction.h"
#include "data/table.h"

namespace tutti {
namespace {

using Row = std::vector<std::string>;

struct Layout {
  bool has_header = false;
  size_t columns = 0;
  size_t label = 0;
  Row names;  // with a header only
};

// Names are a header; a row of data with a misspelt number is not, so most must not be numbers.
bool looks_like_names(const Row& row) {
  const auto words = std::count_if(row.begin(), row.end(), [](const std::string& field) {
    return !field.empty() && !number_in(field);
  });
  return 2 * static_cast<size_t>(words) > row.size();
}

bool detect_header(const CsvData& config, const Row& first) {
  if (config.header != CsvHeader::kAuto) return config.header == CsvHeader::kYes;
  const bool is_named = !config.label.empty() && !number_in(config.label);
  return is_named || looks_like_names(first);
}

size_t label_column(const CsvData& config, const Layout& layout) {
  if (config.label.empty()) return layout.columns - 1;
  for (size_t i = 0; i < layout.names.size(); ++i)
    if (layout.names[i] == config.label) return i;
  const auto number = number_in(config.label);
  if (number && *number >= 0 && *number < static_cast<double>(layout.columns) &&
      *number == std::floor(*number))
    return static_cast<size_t>(*number);
  const std::vector<std::string_view> names(layout.names.begin(), layout.names.end());
  const std::string near = nearest(config.label, names);
  throw ConfigError(
      "task.data.label",
      fmt::format("{}: there is no column {}; {}give a name of the first line or a "
                  "number from 0 to {}",
                  config.path, in_quotes(config.label),
                  near.empty() ? "" : fmt::format("did you mean {}? Or ", in_quotes(near)),
                  layout.columns - 1));
}

// Names what seems to separate the fields of a line without commas.
std::string other_separator(const std::string& line) {
  constexpr std::pair<char, const char*> kOthers[] = {
      {';', "semicolons"}, {'\t', "tabs"}, {'|', "bars"}};
  for (const auto& [separator, name] : kOthers)
    if (line.find(separator) != std::string::npos)
      return fmt::format(
          "; here they seem to be separated by {}: write the file with commas (and "
          "decimal points)",
          name);
  return "";
}

// Reads the first lines and leaves `rows` at the first row of data.
Layout detect_layout(const CsvData& config, CsvRows& rows) {
  Row first, second;
  if (!rows.next(first)) throw DataError(fmt::format("{}: there are no rows", config.path));
  rows.next(second);
  Layout layout;
  if (config.header == CsvHeader::kAuto && has_sklearn_header(rows)) {
    layout = {true, second.size(), 0, {}};
  } else {
    layout = {detect_header(config, first), first.size(), 0, {}};
    if (layout.has_header) layout.names = first;
  }
  if (layout.columns < 2)
    throw DataError(
        fmt::format("{}: a row has one column; two or more are needed, separated by commas{}",
                    config.path, other_separator(first.front())));
  layout.label = label_column(config, layout);
  rows.rewind();
  if (layout.has_header) rows.next(first);
  return layout;
}

std::string column_name(const Layout& layout, size_t column) {
  const std::string number = fmt::format("column {}", column);
  return layout.names.empty() ? number : number + " " + in_quotes(layout.names[column]);
}

float feature_in(const std::string& field, const Layout& layout, size_t column, size_t line,
                 const std::string& path) {
  const auto number = number_in(field);
  if (number && std::abs(*number) <= static_cast<double>(std::numeric_limits<float>::max()))
    return static_cast<float>(*number);
  throw DataError(
      fmt::format("{}, line {}, {}: {} is not a finite number; correct it or leave the "
                  "row out",
                  path, line, column_name(layout, column), in_quotes(field)));
}

// The names of the features, for who predicts rows whose columns are in another order. Names that
// are empty or stand twice identify nothing: then there are none.
std::vector<std::string> feature_names(const Layout& layout) {
  std::vector<std::string> names;
  std::set<std::string> seen;
  for (size_t i = 0; i < layout.names.size(); ++i) {
    if (layout.names[i].empty() || !seen.insert(layout.names[i]).second) return {};
    if (i != layout.label) names.push_back(layout.names[i]);
  }
  return names;
}

}  // namespace

void CsvData::visit(Visitor& v) {
  visit_path(v, path);
  v.field("label", label, "column to predict, by name or number from 0; empty: the last");
  choice(v, "header", header, "whether the first line names the columns");
  visit_regression(v, regression);
  visit_standardise(v, standardise);
}

Source CsvData::read(uint64_t) const {
  CsvRows rows(path, InputFile(path).read_rest());
  const Layout layout = detect_layout(*this, rows);
  std::vector<float> features;
  Answers numbers;
  ClassTexts classes;
  for (Row row; rows.next(row);) {
    if (row.size() != layout.columns)
      throw DataError(fmt::format("{}, line {}: there are {} fields where {} are expected", path,
                                  rows.line(), row.size(), layout.columns));
    for (size_t column = 0; column < row.size(); ++column) {
      if (column == layout.label && !regression) {
        classes.add(row[column]);
        continue;
      }
      const float value = feature_in(row[column], layout, column, rows.line(), path);
      (column == layout.label ? numbers.targets : features).push_back(value);
    }
  }
  Answers answers = regression ? std::move(numbers) : classes.answers();
  const size_t count = answers.size();
  if (count == 0) throw DataError(fmt::format("{}: there are no rows below the header", path));
  const auto width = static_cast<int64_t>(layout.columns - 1);
  return {make_table({width}, std::move(features), std::move(answers), feature_names(layout)),
          count};
}

PredictionData CsvData::read_like(const DataDescription& trained_on, const std::string& file,
                                  const std::string&) const {
  return read_rows_like(trained_on, file, label, header);
}

}  // namespace tutti
