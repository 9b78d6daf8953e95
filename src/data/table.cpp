#include "data/table.h"

#include <cstring>

#include "core/error.h"

namespace tutti {
namespace {

void copy_row(const float* row, size_t width, Scaling, float* out) {
  std::memcpy(out, row, width * sizeof(float));
}

void copy_row(const uint8_t* row, size_t width, Scaling scaling, float* out) {
  for (size_t i = 0; i < width; ++i)
    out[i] = static_cast<float>(row[i]) * scaling.scale + scaling.offset;
}

template <class T>
class Table : public Dataset {
 public:
  Table(std::vector<int64_t> shape, std::vector<T> features, Scaling scaling, Answers answers,
        std::vector<std::string> column_names = {})
      : shape_(std::move(shape)),
        width_(elements_of(shape_)),
        features_(std::move(features)),
        scaling_(scaling),
        answers_(std::move(answers)),
        column_names_(std::move(column_names)) {
    TUTTI_CHECK(features_.size() == answers_.size() * width_);
  }

  size_t size() const override { return answers_.size(); }
  std::vector<int64_t> sample_shape() const override { return shape_; }
  int64_t classes() const override { return answers_.classes; }
  std::vector<std::string> class_names() const override {
    return answers_.names.empty() ? Dataset::class_names() : answers_.names;
  }
  std::vector<std::string> column_names() const override { return column_names_; }

  void gather(std::span<const uint32_t> samples, Batch& batch) const override {
    batch.samples.assign(samples.begin(), samples.end());
    batch.features.resize(samples.size() * width_);
    gather_answers(answers_, samples, batch);
    for (size_t i = 0; i < samples.size(); ++i) {
      const size_t sample = samples[i];
      TUTTI_CHECK(sample < size());
      copy_row(features_.data() + sample * width_, width_, scaling_,
               batch.features.data() + i * width_);
    }
  }

  void visit_contents(const VisitBytes& visit) const override {
    visit(std::as_bytes(std::span(features_)));
    visit(std::as_bytes(std::span(&scaling_, 1)));
    visit_answers(answers_, visit);
  }

  size_t memory_bytes() const override {
    return features_.size() * sizeof(T) + answers_.labels.size() * sizeof(int32_t) +
           answers_.targets.size() * sizeof(float);
  }

 private:
  std::vector<int64_t> shape_;
  size_t width_;
  std::vector<T> features_;
  Scaling scaling_;
  Answers answers_;
  std::vector<std::string> column_names_;
};

}  // namespace

void gather_answers(const Answers& answers, std::span<const uint32_t> samples, Batch& batch) {
  const bool has_labels = answers.classes > 0;
  batch.labels.resize(has_labels ? samples.size() : 0);
  batch.targets.resize(has_labels ? 0 : samples.size());
  for (size_t i = 0; i < samples.size(); ++i) {
    TUTTI_CHECK(samples[i] < answers.size());
    if (has_labels)
      batch.labels[i] = answers.labels[samples[i]];
    else
      batch.targets[i] = answers.targets[samples[i]];
  }
}

void visit_answers(const Answers& answers, const VisitBytes& visit) {
  visit(std::as_bytes(std::span(answers.labels)));
  visit(std::as_bytes(std::span(answers.targets)));
}

size_t elements_of(const std::vector<int64_t>& shape) {
  size_t product = 1;
  for (const int64_t extent : shape) product *= static_cast<size_t>(extent);
  return product;
}

std::shared_ptr<const Dataset> make_table(std::vector<int64_t> shape, std::vector<float> features,
                                          Answers answers,
                                          std::vector<std::string> column_names) {
  return std::make_shared<Table<float>>(std::move(shape), std::move(features), Scaling{},
                                        std::move(answers), std::move(column_names));
}

std::shared_ptr<const Dataset> make_byte_table(std::vector<int64_t> shape,
                                               std::vector<uint8_t> features, Scaling scaling,
                                               Answers answers) {
  return std::make_shared<Table<uint8_t>>(std::move(shape), std::move(features), scaling,
                                          std::move(answers));
}

}  // namespace tutti
