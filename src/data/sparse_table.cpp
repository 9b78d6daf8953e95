#include "data/sparse_table.h"

#include <algorithm>

#include "core/error.h"

namespace tutti {
namespace {

struct SparseContent {
  int64_t width;
  SparseRows rows;
  Answers answers;
  std::vector<std::string> column_names;
};

class SparseTable : public Dataset {
 public:
  SparseTable(std::shared_ptr<const SparseContent> content, bool stays_sparse)
      : content_(std::move(content)), stays_sparse_(stays_sparse) {
    TUTTI_CHECK(content_->rows.begins.size() == content_->answers.size() + 1);
  }

  size_t size() const override { return content_->answers.size(); }
  std::vector<int64_t> sample_shape() const override { return {content_->width}; }
  int64_t classes() const override { return content_->answers.classes; }
  std::vector<std::string> class_names() const override {
    return content_->answers.names.empty() ? Dataset::class_names() : content_->answers.names;
  }

  std::vector<std::string> column_names() const override { return content_->column_names; }

  void gather(std::span<const uint32_t> samples, Batch& batch) const override {
    batch.samples.assign(samples.begin(), samples.end());
    gather_answers(content_->answers, samples, batch);
    if (stays_sparse_)
      gather_sparse(samples, batch.rows);
    else
      gather_dense(samples, batch.features);
  }

  void visit_contents(const VisitBytes& visit) const override {
    visit(std::as_bytes(std::span(content_->rows.begins)));
    visit(std::as_bytes(std::span(content_->rows.columns)));
    visit(std::as_bytes(std::span(content_->rows.values)));
    visit_answers(content_->answers, visit);
  }

  size_t memory_bytes() const override {
    const auto& [width, rows, answers, names] = *content_;
    return rows.begins.size() * sizeof(size_t) +
           rows.values.size() * (sizeof(float) + sizeof(uint64_t)) +
           answers.labels.size() * sizeof(int32_t) + answers.targets.size() * sizeof(float);
  }

  std::shared_ptr<const Dataset> with_sparse_rows() const override {
    return std::make_shared<SparseTable>(content_, true);
  }
  double values_per_sample() const override {
    return static_cast<double>(content_->rows.values.size()) /
           static_cast<double>(std::max<size_t>(1, size()));
  }

 private:
  void gather_dense(std::span<const uint32_t> samples, std::vector<float>& features) const {
    const auto width = static_cast<size_t>(content_->width);
    const SparseRows& rows = content_->rows;
    features.assign(samples.size() * width, 0.0F);
    for (size_t i = 0; i < samples.size(); ++i)
      for (size_t j = rows.begins[samples[i]]; j < rows.begins[samples[i] + 1]; ++j)
        features[i * width + rows.columns[j]] = rows.values[j];
  }

  void gather_sparse(std::span<const uint32_t> samples, SparseRows& gathered) const {
    const SparseRows& rows = content_->rows;
    gathered.begins.assign(1, 0);
    gathered.columns.clear();
    gathered.values.clear();
    const auto append = [](auto& to, const auto& from, size_t begin, size_t end) {
      to.insert(to.end(), from.begin() + static_cast<ptrdiff_t>(begin),
                from.begin() + static_cast<ptrdiff_t>(end));
    };
    for (const uint32_t sample : samples) {
      const size_t begin = rows.begins[sample], end = rows.begins[sample + 1];
      append(gathered.columns, rows.columns, begin, end);
      append(gathered.values, rows.values, begin, end);
      gathered.begins.push_back(gathered.columns.size());
    }
  }

  std::shared_ptr<const SparseContent> content_;
  bool stays_sparse_;
};

}  // namespace

std::shared_ptr<const Dataset> make_sparse_table(int64_t width, SparseRows rows, Answers answers,
                                                 std::vector<std::string> column_names) {
  return std::make_shared<SparseTable>(
      std::make_shared<const SparseContent>(
          SparseContent{width, std::move(rows), std::move(answers), std::move(column_names)}),
      false);
}

}  // namespace tutti
