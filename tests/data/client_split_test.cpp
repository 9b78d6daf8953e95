// How clients share the data: everybody has something, nobody has the same, and each kind of split
// is what its name says.
#include "data/client_split.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "data/data_config.h"
#include "tests/core/field_setter.h"

namespace tutti {
namespace {

Data ten_classes(int64_t samples) {
  DataConfig config("synthetic-classes");
  set(config, "samples", samples);
  set(config, "features", 4);
  return load_data(config, 1, "");
}

using enum ClientSplitKind;

ClientSplitConfig split_of(ClientSplitKind kind, double alpha = 0.5, int64_t labels = 2) {
  return {.kind = kind, .alpha = alpha, .labels = labels};
}

double share(int64_t count, size_t of) {
  return static_cast<double>(count) / static_cast<double>(of);
}

TEST(ClientSplit, EverySampleIsInExactlyOneClientAndNobodyIsEmpty) {
  const Data data = ten_classes(3000);
  for (const ClientSplitKind kind : {kIid, kShards, kDirichlet, kQuantity})
    for (const double alpha : {0.01, 0.5, 100.0})
      for (const int64_t clients : {5, 10, 37, 1000}) {
        const ClientSplit split = split_clients(data, split_of(kind, alpha), clients, 3);
        ASSERT_EQ(split.clients(), static_cast<size_t>(clients));
        std::vector<uint32_t> seen;
        for (size_t client = 0; client < split.clients(); ++client) {
          const auto samples = split.of(client);
          EXPECT_FALSE(samples.empty()) << word_of(kind) << ", client " << client;
          seen.insert(seen.end(), samples.begin(), samples.end());
        }
        std::sort(seen.begin(), seen.end());
        ASSERT_EQ(seen, data.splits.train) << word_of(kind) << ' ' << alpha << ' ' << clients;
      }
}

TEST(ClientSplit, DependsOnTheSeedAndOnNothingElse) {
  const Data data = ten_classes(1000);
  for (const ClientSplitKind kind : {kIid, kShards, kDirichlet, kQuantity}) {
    const auto first = [&](uint64_t seed) {
      const ClientSplit split = split_clients(data, split_of(kind), 10, seed);
      const auto samples = split.of(0);
      return std::vector<uint32_t>(samples.begin(), samples.end());
    };
    EXPECT_EQ(first(1), first(1)) << word_of(kind);
    EXPECT_NE(first(1), first(2)) << word_of(kind);
  }
}

TEST(ClientSplit, IidSharesAreEqualInSizeAndNearlyInLabels) {
  const Data data = ten_classes(20000);
  const ClientSplit split = split_clients(data, split_of(kIid), 10, 1);
  for (size_t client = 0; client < 10; ++client) {
    EXPECT_NEAR(static_cast<double>(split.of(client).size()),
                static_cast<double>(data.splits.train.size()) / 10, 1);
    for (const int64_t count : label_counts(data, split.of(client)))
      EXPECT_NEAR(share(count, split.of(client).size()), 0.1, 0.04);  // five deviations
  }
}

TEST(ClientSplit, ShardsGiveEveryClientItsNumberOfLabels) {
  const Data data = ten_classes(5000);
  for (const int64_t labels : {1, 2, 3, 10})
    for (const int64_t clients : {10, 13, 100}) {
      const ClientSplit split = split_clients(data, split_of(kShards, 0, labels), clients, 5);
      for (size_t client = 0; client < split.clients(); ++client) {
        const auto counts = label_counts(data, split.of(client));
        EXPECT_LE(std::count_if(counts.begin(), counts.end(), [](int64_t c) { return c > 0; }),
                  labels);
      }
    }
}

TEST(ClientSplit, FewClientsCoverAllLabels) {
  const Data data = ten_classes(1000);
  const ClientSplit split = split_clients(data, split_of(kShards, 0, 4), 3, 5);
  size_t samples = 0;
  for (size_t client = 0; client < 3; ++client) samples += split.of(client).size();
  EXPECT_EQ(samples, data.splits.train.size());
}

// The mean distance of the clients' label distributions from that of all.
double skew(const Data& data, double alpha) {
  const ClientSplit split = split_clients(data, split_of(kDirichlet, alpha), 10, 1);
  double sum = 0;
  for (size_t client = 0; client < 10; ++client)
    for (const int64_t count : label_counts(data, split.of(client)))
      sum += std::abs(share(count, split.of(client).size()) - 0.1) / 2;
  return sum / 10;
}

TEST(ClientSplit, DirichletGoesFromOneLabelEachToIid) {
  const Data data = ten_classes(20000);
  EXPECT_GT(skew(data, 0.01), 0.7);  // 0.9 is one label each
  EXPECT_LT(skew(data, 0.5), skew(data, 0.01));
  EXPECT_LT(skew(data, 10), skew(data, 0.5));
  EXPECT_LT(skew(data, 10000), 0.05);
}

// The share of a client is Beta(alpha, (n-1) alpha): mean 1/n, variance (n-1) / (n^2 (n alpha +
// 1)).
TEST(ClientSplit, QuantitiesHaveTheVarianceOfDirichlet) {
  const Data data = ten_classes(100000);
  const int64_t clients = 400;
  for (const double alpha : {0.5, 5.0}) {
    const ClientSplit split = split_clients(data, split_of(kQuantity, alpha), clients, 1);
    double squares = 0;
    for (size_t client = 0; client < split.clients(); ++client) {
      const double difference =
          share(static_cast<int64_t>(split.of(client).size()), data.splits.train.size()) -
          1.0 / clients;
      squares += difference * difference;
    }
    const double n = clients, expected = (n - 1) / (n * n * (n * alpha + 1));
    EXPECT_NEAR(squares / n / expected, 1, 0.5) << alpha;  // of 400 draws with heavy tails
  }
}

TEST(ClientSplit, RefusesWhatTheDataCannotSatisfy) {
  const Data data = ten_classes(100);
  EXPECT_THROW(validate_client_split(sizes_of(data), split_of(kIid), 1000), ConfigError);
  EXPECT_THROW(validate_client_split(sizes_of(data), split_of(kShards, 0, 11), 10), ConfigError);
  EXPECT_THROW(validate_client_split(sizes_of(data), split_of(kShards, 0, 2), 4), ConfigError);
  EXPECT_NO_THROW(validate_client_split(sizes_of(data), split_of(kShards, 0, 2), 5));
  DataConfig regression("synthetic-linear");
  const Data numbers = load_data(regression, 1, "");
  EXPECT_THROW(validate_client_split(sizes_of(numbers), split_of(kDirichlet), 4), ConfigError);
  EXPECT_NO_THROW(validate_client_split(sizes_of(numbers), split_of(kQuantity), 4));
}

TEST(ClientSplit, IdleClientsTakeFourBytesASampleAndFourAClient) {
  const Data data = ten_classes(20000);
  const ClientSplit split = split_clients(data, split_of(kIid), 10000, 1);
  EXPECT_EQ(split.memory_bytes(), 4 * (data.splits.train.size() + 10000));
}

}  // namespace
}  // namespace tutti
