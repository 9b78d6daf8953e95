// What is recorded of updates: staleness, age, and how far their order is from the synchronous one.
#include "strategies/recorder.h"

#include <gtest/gtest.h>

#include "core/random.h"

namespace tutti {
namespace {

Freshness of_rounds(const std::vector<int64_t>& rounds) {
  Recorder recorder;
  for (const int64_t round : rounds) recorder.applied({.round = round});
  return recorder.freshness();
}

TEST(Recorder, MeansMaximaAndHistogram) {
  Recorder recorder;
  recorder.applied({.round = 0, .staleness = 0, .age_s = 1});
  recorder.applied({.round = 1, .staleness = 3, .age_s = 5});
  recorder.applied({.round = 2, .staleness = 3, .age_s = 3});
  recorder.applied({.round = 3, .staleness = 500, .age_s = 3});
  const Freshness f = recorder.freshness();
  EXPECT_EQ(f.count, 4);
  EXPECT_EQ(f.staleness_mean, 506.0 / 4);
  EXPECT_EQ(f.staleness_max, 500);
  EXPECT_EQ(f.age_mean_s, 3);
  EXPECT_EQ(f.age_max_s, 5);
  ASSERT_EQ(f.histogram.size(), Freshness::kBuckets);
  EXPECT_EQ(f.histogram[0], 1);
  EXPECT_EQ(f.histogram[3], 2);
  EXPECT_EQ(f.histogram.back(), 1);  // and all above
}

TEST(Recorder, DisorderIsTheShareOfReversedPairs) {
  EXPECT_EQ(of_rounds({}).disorder, 0);
  EXPECT_EQ(of_rounds({7}).disorder, 0);
  EXPECT_EQ(of_rounds({0, 0, 0, 1, 1, 1, 2, 2, 2}).disorder, 0);  // synchronous
  EXPECT_EQ(of_rounds({3, 3, 3}).disorder, 0);                    // of one round: no order
  EXPECT_EQ(of_rounds({4, 3, 2, 1, 0}).disorder, 1);
  EXPECT_DOUBLE_EQ(of_rounds({0, 1, 0, 1}).disorder, 1.0 / 4);
}

TEST(Recorder, DisorderAgreesWithCountingEveryPair) {
  Random random(3, Stream::kTest);
  for (int trial = 0; trial < 50; ++trial) {
    std::vector<int64_t> rounds(random.below(40));
    for (int64_t& round : rounds) round = static_cast<int64_t>(random.below(12));
    double reversed = 0, pairs = 0;
    for (size_t i = 0; i < rounds.size(); ++i)
      for (size_t j = i + 1; j < rounds.size(); ++j) {
        pairs += rounds[i] != rounds[j];
        reversed += rounds[i] > rounds[j];
      }
    EXPECT_DOUBLE_EQ(of_rounds(rounds).disorder, pairs > 0 ? reversed / pairs : 0);
  }
}

TEST(Recorder, LongSeriesAreThinnedOutEvenly) {
  Recorder recorder;
  for (int64_t step = 0; step < 5000; ++step)
    recorder.measure("distance", step, static_cast<double>(step) * 2);
  recorder.measure("other", 1, 0.5);
  const auto& points = recorder.extra().series.at("distance").points;
  ASSERT_GT(points.size(), Extra::kMostPoints / 2 - 1);
  ASSERT_LE(points.size(), Extra::kMostPoints);
  EXPECT_GT(points.back().first, 4900);
  for (size_t i = 0; i < points.size(); ++i) {
    EXPECT_EQ(points[i].second, static_cast<double>(points[i].first) * 2);
    if (i >= 2) {
      EXPECT_EQ(points[i].first - points[i - 1].first, points[1].first - points[0].first);
    }
  }
  EXPECT_EQ(recorder.extra().series.at("other").points.size(), 1u);
}

}  // namespace
}  // namespace tutti
