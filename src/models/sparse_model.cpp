// The arithmetic of sparse models, in plain loops over the values that are not zero.
#include "models/sparse_model.h"

#include <algorithm>

#include "core/error.h"
#include "models/losses.h"
#include "models/stage.h"

namespace tutti {
namespace {

// What the two models have in common: which rows a sample meets, the loss, the penalty.
class RowsModel : public SparseModel {
 public:
  RowsModel(const Architecture& architecture, const ModelMemory& memory)
      : architecture_(architecture), memory_(memory), width_(architecture.row_width) {
    const bool holds = memory.parameters.empty();
    TUTTI_CHECK(holds || memory.parameters.size() == architecture.parameter_count);
    TUTTI_CHECK(memory.gradients.size() == memory.parameters.size());
  }

  const Architecture& architecture() const override { return architecture_; }
  std::span<float> parameters() override { return memory_.parameters; }
  std::span<float> gradients() override { return memory_.gradients; }

  double gradient(const Batch& batch, float scale, const Ready& ready) override {
    std::fill(memory_.gradients.begin(), memory_.gradients.end(), 0.0F);
    const double loss = add_gradient(batch, scale);
    if (ready) ready({0, architecture_.parameter_count});
    return loss;
  }

  void hold(std::span<const uint64_t> keys) override {
    TUTTI_CHECK(!keys.empty() && keys.back() + 1 == architecture_.rows());
    held_.assign(keys.begin(), keys.end());
    rows_.resize(held_.size() * width_);
    row_gradients_.resize(rows_.size());
    memory_ = {rows_, row_gradients_};
  }
  std::span<const uint64_t> held() const override { return held_; }

  double sparse_gradient(const Batch& batch, std::span<const uint64_t> keys, float scale) override {
    for (const uint64_t key : keys) std::fill_n(slope(place_of(key)), width_, 0.0F);
    return add_gradient(batch, scale);
  }

  Evaluation evaluate(const Batch& batch) override {
    score_all(batch);
    Evaluation result{.count = batch.size()};
    result.loss = loss(batch, 1, {});
    if (architecture_.classification)
      result.correct = static_cast<double>(count_correct(scores_, batch.labels));
    return result;
  }

  void predict(const Batch& batch, std::span<float> scores) override {
    score_all(batch);
    TUTTI_CHECK(scores.size() == scores_.size());
    std::copy(scores_.begin(), scores_.end(), scores.begin());
  }

  std::unique_ptr<StageModel> stage(Range) override { return nullptr; }

 protected:
  using Columns = std::span<const uint64_t>;  // places of rows
  using Values = std::span<const float>;
  virtual void score(Columns columns, Values values, float* scores) = 0;
  // Adds the gradient, given that of the scores.
  virtual void add_slopes(Columns columns, Values values, const float* slopes) = 0;

  const float* row(uint64_t place) const { return memory_.parameters.data() + place * width_; }
  float* slope(uint64_t place) { return memory_.gradients.data() + place * width_; }
  uint64_t bias() const { return memory_.parameters.size() / width_ - 1; }
  size_t width() const { return width_; }

 private:
  template <class Visit>
  void for_each_sample(const Batch& batch, const Visit& visit) {
    const SparseRows& rows = batch.rows;
    TUTTI_CHECK(rows.begins.size() == batch.size() + 1);
    for (size_t i = 0; i < batch.size(); ++i) {
      const size_t begin = rows.begins[i], count = rows.begins[i + 1] - begin;
      visit(i, places_.subspan(begin, count), Values(rows.values).subspan(begin, count));
    }
  }

  uint64_t place_of(uint64_t key) const {
    if (held_.empty()) return key;
    const auto found = std::lower_bound(held_.begin(), held_.end(), key);
    TUTTI_CHECK(found != held_.end() && *found == key);
    return static_cast<uint64_t>(found - held_.begin());
  }

  // Where the rows of the batch's columns lie.
  void locate(const Batch& batch) {
    places_ = batch.rows.columns;
    if (held_.empty()) return;
    located_.resize(places_.size());
    for (size_t i = 0; i < places_.size(); ++i) located_[i] = place_of(places_[i]);
    places_ = located_;
  }

  void score_all(const Batch& batch) {
    locate(batch);
    const auto outputs = static_cast<size_t>(architecture_.outputs);
    scores_.resize(batch.size() * outputs);
    for_each_sample(batch, [&](size_t i, Columns columns, Values values) {
      score(columns, values, scores_.data() + i * outputs);
    });
  }

  double loss(const Batch& batch, float scale, std::span<float> slopes) {
    return architecture_.classification ? cross_entropy(scores_, batch.labels, scale, slopes)
                                        : half_squared_error(scores_, batch.targets, scale, slopes);
  }

  double add_gradient(const Batch& batch, float scale) {
    if (batch.size() == 0) return 0;
    score_all(batch);
    slopes_.resize(scores_.size());
    double sum = loss(batch, scale, slopes_);
    const auto outputs = static_cast<size_t>(architecture_.outputs);
    for_each_sample(batch, [&](size_t i, Columns columns, Values values) {
      add_slopes(columns, values, slopes_.data() + i * outputs);
      if (architecture_.l2 > 0) sum += add_penalty(columns, scale);
    });
    return sum;
  }

  // Each sample brings the penalty of the rows that it touches, not of the bias: what is seldom
  // seen is seldom pulled to zero, and nothing else is touched.
  double add_penalty(Columns columns, float scale) {
    const auto factor = static_cast<float>(architecture_.l2) * scale;
    double squares = 0;
    for (const uint64_t column : columns) {
      const float* const x = row(column);
      float* const g = slope(column);
      for (size_t c = 0; c < width_; ++c) {
        g[c] += factor * x[c];
        squares += double{x[c]} * double{x[c]};
      }
    }
    return architecture_.l2 / 2 * squares;
  }

  Architecture architecture_;
  ModelMemory memory_;
  size_t width_;
  std::vector<float> scores_, slopes_;
  std::vector<uint64_t> held_;  // keys; none: all
  std::vector<float> rows_, row_gradients_;
  Columns places_;  // of the batch
  std::vector<uint64_t> located_;
};

// A row has a weight for each class.
class SparseLogistic : public RowsModel {
 public:
  using RowsModel::RowsModel;

 private:
  void score(Columns columns, Values values, float* scores) override {
    std::copy_n(row(bias()), width(), scores);
    for (size_t j = 0; j < columns.size(); ++j) {
      const float* const weights = row(columns[j]);
      for (size_t c = 0; c < width(); ++c) scores[c] += values[j] * weights[c];
    }
  }

  void add_slopes(Columns columns, Values values, const float* slopes) override {
    float* const biases = slope(bias());
    for (size_t c = 0; c < width(); ++c) biases[c] += slopes[c];
    for (size_t j = 0; j < columns.size(); ++j) {
      float* const weights = slope(columns[j]);
      for (size_t c = 0; c < width(); ++c) weights[c] += values[j] * slopes[c];
    }
  }
};

// A factorization machine (Rendle, "Factorization machines", ICDM 2010): a row has a bias and
// factors, and a sample's number is the sum of the biases and of the products of its rows' factors,
// two by two. With one user and one item in a sample that is matrix factorisation with biases
// (Koren, Bell and Volinsky, "Matrix factorization techniques for recommender systems", 2009).
class Factorization : public RowsModel {
 public:
  Factorization(const Architecture& architecture, const ModelMemory& memory)
      : RowsModel(architecture, memory), sums_(architecture.row_width) {}

 private:
  // sum_{j<k} v_j.v_k x_j x_k = ((sum_j v_j x_j)^2 - sum_j (v_j x_j)^2) / 2, factor by factor.
  void score(Columns columns, Values values, float* scores) override {
    add_up(columns, values);
    double result = double{row(bias())[0]} + double{sums_[0]};
    for (size_t f = 1; f < width(); ++f) {
      double squares = 0;
      for (size_t j = 0; j < columns.size(); ++j) {
        const double part = double{values[j]} * double{row(columns[j])[f]};
        squares += part * part;
      }
      result += (double{sums_[f]} * double{sums_[f]} - squares) / 2;
    }
    scores[0] = static_cast<float>(result);
  }

  void add_slopes(Columns columns, Values values, const float* slopes) override {
    add_up(columns, values);
    slope(bias())[0] += slopes[0];
    for (size_t j = 0; j < columns.size(); ++j) {
      const float* const x = row(columns[j]);
      float* const g = slope(columns[j]);
      const float step = slopes[0] * values[j];
      g[0] += step;
      for (size_t f = 1; f < width(); ++f) g[f] += step * (sums_[f] - values[j] * x[f]);
    }
  }

  void add_up(Columns columns, Values values) {
    std::fill(sums_.begin(), sums_.end(), 0.0F);
    for (size_t j = 0; j < columns.size(); ++j) {
      const float* const x = row(columns[j]);
      for (size_t f = 0; f < width(); ++f) sums_[f] += values[j] * x[f];
    }
  }

  std::vector<float> sums_;  // of the rows of a sample
};

std::unique_ptr<Model> make_sparse_model(const Architecture& architecture,
                                         const ModelMemory& memory, const ModelOptions&) {
  if (architecture.classification) return std::make_unique<SparseLogistic>(architecture, memory);
  return std::make_unique<Factorization>(architecture, memory);
}

std::unique_ptr<StageModel> make_sparse_part(const Architecture&, const ModelMemory&,
                                             const ModelOptions&, ShardGroup*) {
  return nullptr;
}

}  // namespace

const ModelMaker kSparseModels = {.whole = make_sparse_model, .part = make_sparse_part};

}  // namespace tutti
