// A time series in a CSV file, oldest row first: the last `context` rows of some columns predict
// what one column is `horizon` rows later. Split by time: the model is tested on the future.
#include "data/series.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/error.h"
#include "data/common_keys.h"
#include "data/csv_rows.h"
#include "data/input_file.h"
#include "data/prediction.h"

namespace tutti {
namespace {

using Row = std::vector<std::string>;

class Series : public Dataset {
 public:
  // `values` row by row, `width` columns; `label` is the one to predict.
  Series(std::vector<float> values, std::vector<float> targets, size_t context, size_t horizon)
      : values_(std::move(values)),
        targets_(std::move(targets)),
        width_(values_.size() / targets_.size()),
        context_(context),
        horizon_(horizon) {}

  size_t size() const override { return targets_.size() - context_ - horizon_ + 1; }
  std::vector<int64_t> sample_shape() const override {
    return {static_cast<int64_t>(context_ * width_)};
  }
  int64_t classes() const override { return 0; }

  void gather(std::span<const uint32_t> samples, Batch& batch) const override {
    batch.samples.assign(samples.begin(), samples.end());
    batch.labels.clear();
    batch.targets.resize(samples.size());
    batch.features.resize(samples.size() * context_ * width_);
    for (size_t i = 0; i < samples.size(); ++i) {
      TUTTI_CHECK(samples[i] < size());
      std::copy_n(values_.begin() + static_cast<ptrdiff_t>(samples[i] * width_), context_ * width_,
                  batch.features.begin() + static_cast<ptrdiff_t>(i * context_ * width_));
      batch.targets[i] = targets_[samples[i] + context_ + horizon_ - 1];
    }
  }

  void visit_contents(const VisitBytes& visit) const override {
    const std::array<size_t, 2> reach = {context_, horizon_};
    visit(std::as_bytes(std::span(reach)));
    visit(std::as_bytes(std::span(values_)));
    visit(std::as_bytes(std::span(targets_)));
  }
  size_t memory_bytes() const override {
    return (values_.size() + targets_.size()) * sizeof(float);
  }

 private:
  std::vector<float> values_, targets_;
  size_t width_, context_, horizon_;
};

size_t column_of(const std::string& name, const Row& header, const std::string& path,
                 const char* key) {
  const auto found = std::find(header.begin(), header.end(), name);
  if (found != header.end()) return static_cast<size_t>(found - header.begin());
  const std::vector<std::string_view> names(header.begin(), header.end());
  const std::string near = nearest(name, names);
  throw ConfigError(
      key, fmt::format("{}: there is no column {}{}; there are {}", path, in_quotes(name),
                       near.empty() ? "" : fmt::format(", did you mean {}?", in_quotes(near)),
                       fmt::join(names, ", ")));
}

// Names separated by commas; empty: the column that is predicted.
std::vector<size_t> columns_of(const SeriesData& config, const Row& header, size_t label) {
  std::vector<size_t> columns;
  for (size_t begin = 0; begin < config.columns.size();) {
    const size_t end = std::min(config.columns.find(',', begin), config.columns.size());
    std::string name = config.columns.substr(begin, end - begin);
    name.erase(0, name.find_first_not_of(' '));
    name.erase(name.find_last_not_of(' ') + 1);
    columns.push_back(column_of(name, header, config.path, "task.data.columns"));
    begin = end + 1;
  }
  if (columns.empty()) columns.push_back(label);
  return columns;
}

float value_in(const Row& row, size_t column, const CsvRows& rows, const Row& header,
               const std::string& path) {
  const auto number = number_in(row[column]);
  if (!number || !std::isfinite(static_cast<float>(*number)))
    throw DataError(
        fmt::format("{}, line {}, column {}: {} is not a finite number; fill the gap "
                    "or leave the column out",
                    path, rows.line(), in_quotes(header[column]), in_quotes(row[column])));
  return static_cast<float>(*number);
}

}  // namespace

void SeriesData::visit(Visitor& v) {
  visit_path(v, path);
  v.field("label", label, "column to predict, by name");
  v.field("columns", columns, "columns that predict, names with commas; empty: the label's");
  v.field("horizon", horizon, {1, 1 << 20}, "how many rows ahead the prediction is");
  visit_standardise(v, standardise);
  v.field("context", context, {1, 4096}, "how many rows predict");
}

PredictionData SeriesData::read_like(const DataDescription&, const std::string& file,
                                     const std::string&) const {
  SeriesData other = *this;
  other.path = file;
  return {other.read(0).dataset, true};
}

Source SeriesData::read(uint64_t) const {
  if (label.empty())
    throw ConfigError("task.data.label",
                      "task.data.label is missing: it names the column of a series to predict");
  CsvRows rows(path, InputFile(path).read_rest());
  Row header, row;
  if (!rows.next(header)) throw DataError(fmt::format("{}: there are no rows", path));
  const size_t answer = column_of(label, header, path, "task.data.label");
  const std::vector<size_t> fields = columns_of(*this, header, answer);
  std::vector<float> values, targets;
  while (rows.next(row)) {
    if (row.size() != header.size())
      throw DataError(fmt::format("{}, line {}: there are {} fields where {} are expected", path,
                                  rows.line(), row.size(), header.size()));
    for (size_t column : fields) values.push_back(value_in(row, column, rows, header, path));
    targets.push_back(value_in(row, answer, rows, header, path));
  }
  const auto before = static_cast<size_t>(context), ahead = static_cast<size_t>(horizon);
  if (targets.size() < before + ahead)
    throw DataError(
        fmt::format("{}: {} rows are too few for a context of {} and a horizon of {}; "
                    "lower task.data.context",
                    path, targets.size(), before, ahead));
  const auto series =
      std::make_shared<Series>(std::move(values), std::move(targets), before, ahead);
  return {series, series->size(), true};
}

}  // namespace tutti
