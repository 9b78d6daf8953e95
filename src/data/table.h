// Data sets that are tables in memory, one row per sample.
#pragma once

#include "data/dataset.h"

namespace tutti {

// What a sample is to predict: a class each (`classes` > 0), or a number each (`classes` = 0).
struct Answers {
  int64_t classes = 0;
  std::vector<int32_t> labels;
  std::vector<float> targets;
  std::vector<std::string> names;  // of the classes; empty: "0", "1", ...
  size_t size() const { return classes > 0 ? labels.size() : targets.size(); }
};

// The answers of these samples, into `batch`.
void gather_answers(const Answers& answers, std::span<const uint32_t> samples, Batch& batch);

// Visits all answers, for Dataset::visit_contents.
void visit_answers(const Answers& answers, const VisitBytes& visit);

// `column_names`, where there are any, are those of the features.
std::shared_ptr<const Dataset> make_table(std::vector<int64_t> shape, std::vector<float> features,
                                          Answers answers,
                                          std::vector<std::string> column_names = {});

// Bytes stay bytes in memory (a quarter of the space) and become byte * scale + offset when
// gathered.
struct Scaling {
  float scale = 1;
  float offset = 0;
  bool operator==(const Scaling&) const = default;
};
std::shared_ptr<const Dataset> make_byte_table(std::vector<int64_t> shape,
                                               std::vector<uint8_t> features, Scaling scaling,
                                               Answers answers);

size_t elements_of(const std::vector<int64_t>& shape);

}  // namespace tutti
