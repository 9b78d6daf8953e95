// Ratings whose best model is known: entries of 3.5 + b_u + b_i + p_u.q_i with normal noise, so
// that no model gets below a mean squared error of noise^2, and a factorization of the same rank
// comes near it.
#include "data/synthetic_ratings.h"

#include <fmt/format.h>

#include <cmath>

#include "core/error.h"
#include "core/random.h"
#include "data/prediction.h"
#include "data/sparse_table.h"

namespace tutti {
namespace {

// Sequences of Stream::kSynthetic that synthetic.cpp does not use.
constexpr uint32_t kRatingFactors = 16;
constexpr uint32_t kRatingEntries = 17;

constexpr double kMeanRating = 3.5;
constexpr double kBiasDeviation = 0.3;

}  // namespace

void SyntheticRatingsData::visit(Visitor& v) {
  v.field("samples", samples, {1, 4294967295}, "how many samples");
  v.field("users", users, {1, 1 << 24}, "how many users rate");
  v.field("items", items, {1, 1 << 24}, "how many items they rate");
  v.field("rank", rank, {1, 1024}, "of the matrix that the ratings are drawn from");
  v.field("noise", noise, kNotNegative, "deviation of the noise on the ratings");
}

PredictionData SyntheticRatingsData::read_like(const DataDescription&, const std::string& path,
                                               const std::string&) const {
  throw DataError(
      fmt::format("{}: users and items of synthetic-ratings have no names that a file could have; "
                  "leave --data out to predict the test samples",
                  path));
}

Source SyntheticRatingsData::read(uint64_t seed) const {
  const auto width = static_cast<size_t>(rank);
  const auto raters = static_cast<size_t>(users), rated = static_cast<size_t>(items);
  // Products of two factors have a deviation of 0.5.
  const double deviation = std::sqrt(0.5 / std::sqrt(static_cast<double>(width)));
  std::vector<float> factors((raters + rated) * (width + 1));
  for (size_t row = 0; row < raters + rated; ++row) {
    Random random(seed, Stream::kSynthetic, kRatingFactors, static_cast<uint32_t>(row));
    float* const values = factors.data() + row * (width + 1);
    values[0] = static_cast<float>(kBiasDeviation * random.normal());
    for (size_t f = 1; f <= width; ++f) values[f] = static_cast<float>(deviation * random.normal());
  }
  SparseRows rows;
  Answers answers;
  for (int64_t i = 0; i < samples; ++i) {
    Random random(seed, Stream::kSynthetic, kRatingEntries, static_cast<uint32_t>(i));
    const size_t user = random.below(raters), item = raters + random.below(rated);
    const float* const p = factors.data() + user * (width + 1);
    const float* const q = factors.data() + item * (width + 1);
    double rating = kMeanRating + double{p[0]} + double{q[0]} + noise * random.normal();
    for (size_t f = 1; f <= width; ++f) rating += double{p[f]} * double{q[f]};
    rows.columns.push_back(static_cast<uint64_t>(user));
    rows.columns.push_back(static_cast<uint64_t>(item));
    rows.values.insert(rows.values.end(), {1.0F, 1.0F});
    rows.begins.push_back(rows.columns.size());
    answers.targets.push_back(static_cast<float>(rating));
  }
  const size_t count = answers.targets.size();
  return {make_sparse_table(users + items, std::move(rows), std::move(answers)), count};
}

}  // namespace tutti
