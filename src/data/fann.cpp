// The text format of FANN, the Fast Artificial Neural Network library, in which the Debian package
// libfann-doc brings the data sets of PROBEN1 (Prechelt, 1994) and others: the numbers of samples,
// inputs and outputs, then the inputs and outputs of each sample, separated by blanks.
#include "data/fann.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "data/classes.h"
#include "data/common_keys.h"
#include "data/csv_rows.h"
#include "data/prediction.h"
#include "data/table.h"
#include "data/text_lines.h"

namespace tutti {
namespace {

// The numbers of a file, whatever lines they are on.
class Numbers {
 public:
  explicit Numbers(const std::string& path) : lines_(path) {}

  // Throws DataError at the end of the file.
  double next(const char* what) {
    std::string_view word = take_word(rest_);
    while (word.empty()) {
      if (!lines_.next(rest_))
        throw DataError(
            fmt::format("{}: the file ends before {}; it is truncated", lines_.path(), what));
      word = take_word(rest_);
    }
    const auto number = number_in(word);
    if (!number || std::abs(*number) > static_cast<double>(std::numeric_limits<float>::max()))
      throw DataError(fmt::format("{}{} is not a finite number", lines_.place(), in_quotes(word)));
    return *number;
  }

  size_t next_count(const char* what) {
    const double number = next(what);
    if (number != std::floor(number) || number < 1 || number > 1e9)
      throw DataError(
          fmt::format("{}: the first line must hold the numbers of samples, inputs and "
                      "outputs, but one is {}",
                      lines_.path(), number));
    return static_cast<size_t>(number);
  }

  bool at_end() {
    while (rest_.find_first_not_of(" \t") == std::string_view::npos)
      if (!lines_.next(rest_)) return true;
    return false;
  }

  size_t bytes() const { return lines_.bytes(); }
  const std::string& path() const { return lines_.path(); }

 private:
  TextLines lines_;
  std::string_view rest_;
};

struct FannContent {
  size_t inputs = 0, outputs = 0;
  std::vector<float> features;
  Answers numbers;
  ClassTexts classes;
};

size_t output_of(const FannData& config, size_t outputs) {
  if (config.label.empty()) return 0;
  const auto number = number_in(config.label);
  if (!number || *number < 0 || *number >= static_cast<double>(outputs) ||
      *number != std::floor(*number))
    throw ConfigError("task.data.label",
                      fmt::format("{}: there is no output {}; give a number from 0 to {}",
                                  config.path, in_quotes(config.label), outputs - 1));
  return static_cast<size_t>(*number);
}

// Several outputs are a class each, of which the largest counts; one output is the class.
void take_outputs(const std::vector<float>& outputs, const FannData& config, FannContent& content) {
  if (config.regression)
    content.numbers.targets.push_back(outputs[output_of(config, outputs.size())]);
  else if (outputs.size() == 1)
    content.classes.add(fmt::format("{}", outputs[0]));
  else
    content.classes.add(
        fmt::format("{}", std::max_element(outputs.begin(), outputs.end()) - outputs.begin()));
}

size_t read_samples(const std::string& path, const FannData& config, FannContent& content) {
  Numbers numbers(path);
  const size_t samples = numbers.next_count("its numbers of samples");
  const size_t inputs = numbers.next_count("its number of inputs");
  const size_t outputs = numbers.next_count("its number of outputs");
  // A number takes two bytes at least. Compared as doubles, which cannot overflow.
  if (static_cast<double>(samples) * static_cast<double>(inputs + outputs) * 2 >
      static_cast<double>(numbers.bytes()) + 1)
    throw DataError(
        fmt::format("{}: {} samples of {} + {} numbers are promised, more values than "
                    "the file can hold",
                    path, samples, inputs, outputs));
  if (content.inputs != 0 && (content.inputs != inputs || content.outputs != outputs))
    throw DataError(
        fmt::format("{}: has other numbers of inputs and outputs than {}", path, config.path));
  content.inputs = inputs;
  content.outputs = outputs;
  std::vector<float> answer(outputs);
  for (size_t sample = 0; sample < samples; ++sample) {
    for (size_t i = 0; i < inputs; ++i)
      content.features.push_back(static_cast<float>(numbers.next("the samples it promises")));
    for (float& value : answer) value = static_cast<float>(numbers.next("the samples it promises"));
    take_outputs(answer, config, content);
  }
  if (!numbers.at_end())
    throw DataError(
        fmt::format("{}: there is more than the {} samples that it promises", path, samples));
  return samples;
}

}  // namespace

void FannData::visit(Visitor& v) {
  visit_path(v, path);
  visit_test_path(v, test_path);
  v.field("label", label, "regression: output to predict, by number from 0; empty: the first");
  visit_regression(v, regression);
  visit_standardise(v, standardise);
}

Source FannData::read(uint64_t) const { return read_among(nullptr); }

// A file to predict need not contain every class.
PredictionData FannData::read_like(const DataDescription& trained_on, const std::string& file,
                                   const std::string&) const {
  FannData other = *this;
  other.path = file;
  other.test_path.clear();
  return {other.read_among(&trained_on.class_names).dataset, true};
}

Source FannData::read_among(const ClassNames* classes) const {
  FannContent content;
  const size_t test_from = read_samples(path, *this, content);
  if (!test_path.empty()) read_samples(test_path, *this, content);
  Answers answers = std::move(content.numbers);
  if (!regression)
    answers = classes ? content.classes.answers_among(*classes, path) : content.classes.answers();
  return {make_table({static_cast<int64_t>(content.inputs)}, std::move(content.features),
                     std::move(answers)),
          test_from};
}

}  // namespace tutti
