// Ratings whose best model is known: entries of 3.5 + b_u + b_i + p_u.q_i with normal noise, so
// that no model gets below a mean squared error of noise^2, and a factorization of the same rank
// comes near it.
#include <cmath>

#include "core/random.h"
#include "data/readers.h"
#include "data/sparse_table.h"

namespace tutti {
namespace {

// Sequences of Stream::kSynthetic that synthetic.cpp does not use.
constexpr uint32_t kRatingFactors = 16;
constexpr uint32_t kRatingEntries = 17;

constexpr double kMeanRating = 3.5;
constexpr double kBiasDeviation = 0.3;

}  // namespace

Source make_synthetic_ratings(const DataConfig& config, uint64_t seed) {
  const auto rank = static_cast<size_t>(config.rank);
  const auto users = static_cast<size_t>(config.users), items = static_cast<size_t>(config.items);
  // Products of two factors have a deviation of 0.5.
  const double deviation = std::sqrt(0.5 / std::sqrt(static_cast<double>(rank)));
  std::vector<float> factors((users + items) * (rank + 1));
  for (size_t row = 0; row < users + items; ++row) {
    Random random(seed, Stream::kSynthetic, kRatingFactors, static_cast<uint32_t>(row));
    float* const values = factors.data() + row * (rank + 1);
    values[0] = static_cast<float>(kBiasDeviation * random.normal());
    for (size_t f = 1; f <= rank; ++f) values[f] = static_cast<float>(deviation * random.normal());
  }
  SparseRows rows;
  Answers answers;
  for (int64_t i = 0; i < config.samples; ++i) {
    Random random(seed, Stream::kSynthetic, kRatingEntries, static_cast<uint32_t>(i));
    const size_t user = random.below(users), item = users + random.below(items);
    const float* const p = factors.data() + user * (rank + 1);
    const float* const q = factors.data() + item * (rank + 1);
    double rating = kMeanRating + double{p[0]} + double{q[0]} + config.noise * random.normal();
    for (size_t f = 1; f <= rank; ++f) rating += double{p[f]} * double{q[f]};
    rows.columns.push_back(static_cast<uint64_t>(user));
    rows.columns.push_back(static_cast<uint64_t>(item));
    rows.values.insert(rows.values.end(), {1.0F, 1.0F});
    rows.begins.push_back(rows.columns.size());
    answers.targets.push_back(static_cast<float>(rating));
  }
  const size_t count = answers.targets.size();
  return {make_sparse_table(config.users + config.items, std::move(rows), std::move(answers)),
          count};
}

}  // namespace tutti
