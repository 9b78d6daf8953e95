#include "data/batches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "core/error.h"

namespace tutti {
namespace {

// Training samples are not 0, 1, 2, ...: other splits are taken out of them. Kept, because Batches
// does not copy them.
const std::vector<uint32_t>& train_of(size_t size) {
  static std::map<size_t, std::vector<uint32_t>> kept;
  std::vector<uint32_t>& train = kept[size];
  train.resize(size);
  for (size_t i = 0; i < size; ++i) train[i] = static_cast<uint32_t>(3 * i + 1);
  return train;
}

std::vector<uint32_t> sorted(std::vector<uint32_t> values) {
  std::sort(values.begin(), values.end());
  return values;
}

std::vector<uint32_t> copy(std::span<const uint32_t> values) {
  return {values.begin(), values.end()};
}

constexpr Partition kPartitions[] = {Partition::kGlobal, Partition::kDisjoint,
                                     Partition::kReshuffle};

void for_every_size(const std::function<void(size_t, int64_t, int64_t)>& check) {
  for (const size_t size : {1u, 2u, 5u, 16u, 97u, 128u})
    for (const int64_t workers : {1, 2, 3, 8, 16})
      for (const int64_t batch : {1, 2, 7, 16, 128, 1000}) check(size, workers, batch);
}

TEST(Batches, EverySampleComesExactlyOncePerEpochInEveryPartition) {
  for (const Partition partition : kPartitions)
    for_every_size([&](size_t size, int64_t workers, int64_t batch) {
      const std::vector<uint32_t> train = train_of(size);
      Batches batches(train, partition, workers, 7);
      for (int64_t epoch = 0; epoch < 3; ++epoch) {
        batches.begin_epoch(epoch, batch);
        std::vector<uint32_t> seen;
        for (int64_t step = 0; step < batches.steps(); ++step)
          for (int64_t worker = 0; worker < workers; ++worker) {
            const auto share = batches.share(step, worker);
            seen.insert(seen.end(), share.begin(), share.end());
          }
        ASSERT_EQ(sorted(seen), train) << word_of(partition) << ' ' << workers << " x " << batch;
      }
    });
}

TEST(Batches, SharesConcatenateToTheGlobalBatchAndAddUpToItsCount) {
  for (const Partition partition : kPartitions)
    for_every_size([&](size_t size, int64_t workers, int64_t batch) {
      Batches batches(train_of(size), partition, workers, 7);
      batches.begin_epoch(2, batch);
      const int64_t whole = static_cast<int64_t>(size) / batch;
      ASSERT_EQ(batches.steps(), (static_cast<int64_t>(size) + batch - 1) / batch);
      for (int64_t step = 0; step < batches.steps(); ++step) {
        std::vector<uint32_t> all;
        size_t least = SIZE_MAX, most = 0;
        for (int64_t worker = 0; worker < workers; ++worker) {
          const auto share = batches.share(step, worker);
          all.insert(all.end(), share.begin(), share.end());
          least = std::min(least, share.size());
          most = std::max(most, share.size());
        }
        ASSERT_EQ(batches.global(step), all);
        ASSERT_EQ(batches.count(step), static_cast<int64_t>(all.size()));
        // Every batch is full but the last, and nobody does much more than another.
        ASSERT_EQ(batches.count(step), step < whole ? batch : static_cast<int64_t>(size) % batch);
        ASSERT_LE(most - least, 1u) << word_of(partition);
      }
    });
}

TEST(Batches, GlobalBatchesDoNotDependOnTheWorkers) {
  const std::vector<uint32_t> train = train_of(101);
  Batches alone(train, Partition::kGlobal, 1, 7);
  for (const int64_t workers : {2, 3, 8, 200}) {
    Batches many(train, Partition::kGlobal, workers, 7);
    for (int64_t epoch = 0; epoch < 2; ++epoch) {
      alone.begin_epoch(epoch, 16);
      many.begin_epoch(epoch, 16);
      for (int64_t step = 0; step < alone.steps(); ++step)
        EXPECT_EQ(alone.global(step), many.global(step));
    }
  }
}

TEST(Batches, LanesPartitionTheBatchAndDoNotDependOnTheWorkers) {
  const std::vector<uint32_t> train = train_of(101);
  for (const int64_t lanes : {1, 4, 16, 40}) {
    Batches alone(train, Partition::kGlobal, 1, 7), many(train, Partition::kGlobal, 5, 7);
    alone.begin_epoch(0, 30);
    many.begin_epoch(0, 30);
    for (int64_t step = 0; step < alone.steps(); ++step) {
      std::vector<uint32_t> all;
      for (int64_t lane = 0; lane < lanes; ++lane) {
        const auto part = alone.lane(step, lane, lanes);
        EXPECT_EQ(copy(part), copy(many.lane(step, lane, lanes)));
        all.insert(all.end(), part.begin(), part.end());
      }
      EXPECT_EQ(all, many.global(step));
    }
  }
}

TEST(Batches, LanesExistForGlobalBatchesOnly) {
  Batches batches(train_of(10), Partition::kDisjoint, 2, 7);
  batches.begin_epoch(0, 4);
  EXPECT_THROW(batches.lane(0, 0, 2), std::logic_error);
}

std::set<uint32_t> samples_of(Batches& batches, int64_t epoch, int64_t batch, int64_t worker) {
  batches.begin_epoch(epoch, batch);
  std::set<uint32_t> samples;
  for (int64_t step = 0; step < batches.steps(); ++step)
    for (const uint32_t sample : batches.share(step, worker)) samples.insert(sample);
  return samples;
}

TEST(Batches, ADisjointWorkerKeepsItsShareAlsoWhenTheBatchGrows) {
  Batches batches(train_of(100), Partition::kDisjoint, 3, 7);
  for (int64_t worker = 0; worker < 3; ++worker) {
    const auto first = samples_of(batches, 0, 10, worker);
    EXPECT_EQ(samples_of(batches, 1, 10, worker), first);
    EXPECT_EQ(samples_of(batches, 2, 37, worker), first);
  }
}

TEST(Batches, AReshufflingWorkerGetsANewShareEveryEpoch) {
  Batches batches(train_of(100), Partition::kReshuffle, 3, 7);
  EXPECT_NE(samples_of(batches, 0, 10, 1), samples_of(batches, 1, 10, 1));
}

TEST(Batches, OrderChangesWithTheEpochAndTheSeedAndNothingElse) {
  for (const Partition partition : kPartitions) {
    Batches one(train_of(100), partition, 2, 7), same(train_of(100), partition, 2, 7);
    Batches other(train_of(100), partition, 2, 8);
    one.begin_epoch(5, 10);
    other.begin_epoch(5, 10);
    same.begin_epoch(3, 20);
    same.begin_epoch(5, 10);
    EXPECT_EQ(one.global(0), same.global(0));
    EXPECT_NE(one.global(0), other.global(0));
    same.begin_epoch(6, 10);
    EXPECT_NE(one.global(0), same.global(0));
  }
}

TEST(Batches, WorkersBeyondTheLastSamplesGetEmptyShares) {
  for (const Partition partition : kPartitions) {
    Batches batches(train_of(18), partition, 8, 7);
    batches.begin_epoch(0, 16);
    ASSERT_EQ(batches.steps(), 2);
    EXPECT_EQ(batches.count(1), 2);
    int empty = 0;
    for (int64_t worker = 0; worker < 8; ++worker)
      empty += batches.share(1, worker).empty() ? 1 : 0;
    EXPECT_EQ(empty, 6) << word_of(partition);
  }
}

TEST(Batches, AGrowingBatchTakesFewerSteps) {
  Batches batches(train_of(100), Partition::kGlobal, 2, 7);
  batches.begin_epoch(0, 10);
  EXPECT_EQ(batches.steps(), 10);
  batches.begin_epoch(1, 20);
  EXPECT_EQ(batches.steps(), 5);
  batches.begin_epoch(2, 400);
  EXPECT_EQ(batches.steps(), 1);
  EXPECT_EQ(batches.count(0), 100);
}

TEST(Batches, WithoutShufflingTheSizesAreTheSame) {
  for (const Partition partition : kPartitions)
    for_every_size([&](size_t size, int64_t workers, int64_t batch) {
      Batches shuffled(train_of(size), partition, workers, 7);
      Batches ordered(train_of(size), partition, workers, 7, false);
      shuffled.begin_epoch(1, batch);
      ordered.begin_epoch(1, batch);
      std::vector<uint32_t> seen;
      ASSERT_EQ(ordered.steps(), shuffled.steps());
      for (int64_t step = 0; step < ordered.steps(); ++step) {
        ASSERT_EQ(ordered.count(step), shuffled.count(step));
        for (int64_t worker = 0; worker < workers; ++worker) {
          const auto share = ordered.share(step, worker);
          ASSERT_EQ(share.size(), shuffled.share(step, worker).size());
          seen.insert(seen.end(), share.begin(), share.end());
        }
      }
      ASSERT_EQ(sorted(seen), train_of(size));
    });
}

TEST(Batches, SurviveAMove) {
  for (const Partition partition : kPartitions) {
    Batches original(train_of(20), partition, 2, 7);
    original.begin_epoch(0, 5);
    const std::vector<uint32_t> before = original.global(1);
    const Batches moved = std::move(original);
    EXPECT_EQ(moved.global(1), before);
  }
}

TEST(Batches, AStepThatDoesNotExistIsABug) {
  Batches batches(train_of(3), Partition::kGlobal, 1, 1);
  EXPECT_THROW(batches.share(0, 0), std::logic_error);  // no epoch has begun
  batches.begin_epoch(0, 2);
  EXPECT_THROW(batches.share(2, 0), std::logic_error);
  EXPECT_THROW(batches.share(-1, 0), std::logic_error);
  EXPECT_THROW(batches.share(0, 1), std::logic_error);
}

}  // namespace
}  // namespace tutti
