// The text format of LIBSVM and LIBLINEAR: `label index:value ...` on each line, indices ascending
// from 1, absent ones zero, the rest of a line after # ignored. The form in which logs of clicks
// and other sparse data are passed around.
#include "data/libsvm.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "core/error.h"
#include "data/classes.h"
#include "data/common_keys.h"
#include "data/csv_rows.h"
#include "data/prediction.h"
#include "data/sparse_table.h"
#include "data/text_lines.h"

namespace tutti {
namespace {

// A row becomes dense when it is used, so an index must be plausible: one mistyped digit may not
// take gigabytes. Real files name most of their features at least once.
constexpr size_t kSurelyPlausible = 1024;
constexpr double kMostFeatures = 1 << 24;

struct LibsvmContent {
  SparseRows rows;
  ClassTexts classes;
  std::vector<float> targets;
  double most = kMostFeatures;
  uint64_t width = 0;       // the largest index
  std::string width_place;  // where it stands
};

float finite_number(std::string_view text, const TextLines& lines) {
  const auto number = number_in(text);
  if (!number || std::abs(*number) > static_cast<double>(std::numeric_limits<float>::max()))
    throw DataError(fmt::format("{}{} is not a finite number", lines.place(), in_quotes(text)));
  return static_cast<float>(*number);
}

void read_label(std::string_view word, bool regression, const TextLines& lines,
                LibsvmContent& content) {
  const float value = finite_number(word, lines);
  if (regression) {
    content.targets.push_back(value);
    return;
  }
  if (value != std::floor(value))
    throw DataError(
        fmt::format("{}the label {} is not the number of a class; set task.data.regression = true "
                    "to predict it as a number",
                    lines.place(), in_quotes(word)));
  content.classes.add(fmt::format("{:.0f}", value + 0.0F));  // "+1" and "1" are the same, -0 is 0
}

void read_features(std::string_view rest, const TextLines& lines, LibsvmContent& content) {
  uint64_t last = 0;
  for (std::string_view word = take_word(rest); !word.empty(); word = take_word(rest)) {
    const size_t colon = word.find(':');
    const auto index =
        colon == std::string_view::npos ? std::nullopt : number_in(word.substr(0, colon));
    if (!index || *index != std::floor(*index) || *index < 1 || *index > content.most)
      throw DataError(fmt::format("{}{} is not index:value with an index from 1 to {}",
                                  lines.place(), in_quotes(word), content.most));
    const auto column = static_cast<uint64_t>(*index);
    if (column <= last)
      throw DataError(fmt::format("{}index {} follows index {}; indices must ascend", lines.place(),
                                  column, last));
    last = column;
    content.rows.columns.push_back(column - 1);
    content.rows.values.push_back(finite_number(word.substr(colon + 1), lines));
  }
  content.rows.begins.push_back(content.rows.columns.size());
  if (last > content.width) {
    content.width = last;
    content.width_place = lines.place();
  }
}

void read_rows(const std::string& path, bool regression, LibsvmContent& content) {
  TextLines lines(path);
  const size_t rows = content.rows.begins.size();
  for (std::string_view line; lines.next(line);) {
    line = line.substr(0, line.find('#'));
    const std::string_view label = take_word(line);
    if (label.empty()) continue;
    read_label(label, regression, lines, content);
    read_features(line, lines, content);
  }
  if (content.rows.begins.size() == rows)
    throw DataError(fmt::format("{}: there are no rows", path));
}

}  // namespace

void LibsvmData::visit(Visitor& v) {
  visit_path(v, path);
  visit_test_path(v, test_path);
  v.field("keys", keys, {0, 9007199254740992},
          "indices are keys of a sparse model, from 1 to this, whatever their gaps; 0: they number "
          "features");
  visit_regression(v, regression);
  v.field("standardise", standardise,
          "give each feature mean 0 and deviation 1, which makes sparse samples dense");
}

// Keys have no scales that could be compared: most of them are not there.
FeatureKind LibsvmData::feature_kind() const {
  if (standardise) return FeatureKind::kStandardised;
  return keys > 0 ? FeatureKind::kFixed : FeatureKind::kNumbers;
}

Source LibsvmData::read(uint64_t) const { return read_among(nullptr); }

// A file to predict need not contain every class and feature.
PredictionData LibsvmData::read_like(const DataDescription& trained_on, const std::string& file,
                                     const std::string&) const {
  LibsvmData other = *this;
  other.path = file;
  other.test_path.clear();
  other.keys = trained_on.sample_shape.at(0);
  return {other.read_among(&trained_on.class_names).dataset, true};
}

Source LibsvmData::read_among(const ClassNames* classes) const {
  LibsvmContent content;
  if (keys > 0) content.most = static_cast<double>(keys);
  read_rows(path, regression, content);
  const size_t test_from = content.rows.begins.size() - 1;
  if (!test_path.empty()) read_rows(test_path, regression, content);
  if (keys == 0 && content.width > kSurelyPlausible + content.rows.values.size())
    throw DataError(
        fmt::format("{}index {} is larger than {} values in the file make plausible; correct it, "
                    "number the features without gaps, or set task.data.keys if they are keys of a "
                    "sparse model",
                    content.width_place, content.width, content.rows.values.size()));
  Answers answers;
  if (regression)
    answers.targets = std::move(content.targets);
  else
    answers = classes ? content.classes.answers_among(*classes, path) : content.classes.answers();
  const auto largest = static_cast<int64_t>(content.width);
  const int64_t width = keys > 0 ? keys : std::max<int64_t>(1, largest);
  return {make_sparse_table(width, std::move(content.rows), std::move(answers)), test_from};
}

}  // namespace tutti
