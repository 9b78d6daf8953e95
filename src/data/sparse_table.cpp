#include "data/sparse_table.h"

#include "core/error.h"

namespace tutti {
namespace {

class SparseTable : public Dataset {
 public:
  SparseTable(int64_t width, SparseRows rows, Answers answers)
      : width_(width), rows_(std::move(rows)), answers_(std::move(answers)) {
    TUTTI_CHECK(rows_.begins.size() == answers_.size() + 1);
  }

  size_t size() const override { return answers_.size(); }
  std::vector<int64_t> sample_shape() const override { return {width_}; }
  int64_t classes() const override { return answers_.classes; }
  std::vector<std::string> class_names() const override {
    return answers_.names.empty() ? Dataset::class_names() : answers_.names;
  }

  void gather(std::span<const uint32_t> samples, Batch& batch) const override {
    const auto width = static_cast<size_t>(width_);
    batch.samples.assign(samples.begin(), samples.end());
    batch.features.assign(samples.size() * width, 0.0F);
    gather_answers(answers_, samples, batch);
    for (size_t i = 0; i < samples.size(); ++i)
      for (size_t j = rows_.begins[samples[i]]; j < rows_.begins[samples[i] + 1]; ++j)
        batch.features[i * width + rows_.columns[j]] = rows_.values[j];
  }

  size_t memory_bytes() const override {
    return rows_.begins.size() * sizeof(size_t) +
           rows_.values.size() * (sizeof(float) + sizeof(uint32_t)) +
           answers_.labels.size() * sizeof(int32_t) + answers_.targets.size() * sizeof(float);
  }

 private:
  int64_t width_;
  SparseRows rows_;
  Answers answers_;
};

}  // namespace

std::shared_ptr<const Dataset> make_sparse_table(int64_t width, SparseRows rows, Answers answers) {
  return std::make_shared<SparseTable>(width, std::move(rows), std::move(answers));
}

}  // namespace tutti
