// The table against a map that is known to work, and what it takes in memory.
#include "sparse/row_table.h"

#include <gtest/gtest.h>

#include <unordered_map>

#include "core/random.h"

namespace tutti {
namespace {

void start_at_key(uint64_t key, std::span<float> row) {
  for (size_t c = 0; c < row.size(); ++c) row[c] = static_cast<float>(key % 1000 + c);
}

std::vector<uint64_t> sorted_keys(Random& random, size_t count, uint64_t space) {
  std::vector<uint64_t> keys(count);
  for (uint64_t& key : keys) key = space ? random.below(space) : random.next_u64();
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

// Random updates and readings in key spaces that are crowded, sparse, and all of 64 bits.
TEST(RowTable, DoesWhatAMapDoes) {
  for (const uint64_t space : {uint64_t{50}, uint64_t{100'000}, uint64_t{0}})
    for (const size_t width : {1u, 3u, 8u}) {
      Random random(space + width, Stream::kTest);
      RowTable table(width, 2, start_at_key);
      std::unordered_map<uint64_t, std::vector<float>> map;
      const auto expected = [&](uint64_t key) {
        if (map.count(key)) return map[key];
        std::vector<float> row(width);
        start_at_key(key, row);
        return row;
      };
      for (int round = 0; round < 200; ++round) {
        const auto keys = sorted_keys(random, 1 + random.below(300), space);
        if (round % 2) {
          table.update(keys, [&](size_t i, uint32_t row) {
            ASSERT_EQ(table.key(row), keys[i]);
            table.values(row)[width - 1] += 2;
            table.state(row)[1] += 1;
          });
          for (const uint64_t key : keys) {
            std::vector<float> row = expected(key);
            row[width - 1] += 2;
            map[key] = row;
          }
          continue;
        }
        std::vector<float> rows(keys.size() * width);
        table.read(keys, rows);
        for (size_t i = 0; i < keys.size(); ++i)
          for (size_t c = 0; c < width; ++c)
            ASSERT_EQ(rows[i * width + c], expected(keys[i])[c]) << "key " << keys[i];
      }
      ASSERT_EQ(table.size(), map.size());  // reading makes nothing
      for (uint32_t row = 0; row < table.size(); ++row) {
        ASSERT_TRUE(map.count(table.key(row)));
        EXPECT_EQ(table.find(table.key(row)), row);
        EXPECT_EQ(table.values(row)[0], map[table.key(row)][0]);
        EXPECT_GE(table.state(row)[1], 1);
      }
    }
}

// Keys that begin in the same places of the table still find their own rows, through many growths.
TEST(RowTable, KeepsRowsInPlaceWhileItGrows) {
  RowTable table(4, 0);
  const float* const first = table.values(table.find_or_make(0)).data();
  for (uint64_t i = 1; i < 100'000; ++i) table.values(table.find_or_make(i << 40))[0] = float(i);
  EXPECT_EQ(table.values(table.find(0)).data(), first);
  for (uint64_t i = 1; i < 100'000; ++i) ASSERT_EQ(table.values(table.find(i << 40))[0], float(i));
  EXPECT_EQ(table.find(12345), RowTable::kNone);
}

TEST(RowTable, TakesMemoryForTouchedKeysOnly) {
  Random random(1, Stream::kTest);
  RowTable table(8, 8);
  const auto few = sorted_keys(random, 1000, 0);  // of 2^64
  table.update(few, [](size_t, uint32_t) {});
  EXPECT_LT(table.memory_bytes(), 1u << 20);
  const size_t before = table.memory_bytes();
  std::vector<float> rows(8 * 100'000);
  const auto many = sorted_keys(random, 100'000, 0);
  table.read(many, std::span(rows).first(8 * many.size()));
  EXPECT_EQ(table.memory_bytes(), before);  // reading takes none
  table.update(many, [](size_t, uint32_t) {});
  // A row and its state, its key twice, and the slots, which are at most four for each.
  const size_t row = 16 * sizeof(float) + sizeof(uint64_t) * 2;
  EXPECT_LT(table.memory_bytes(), 101'000 * (row + 4 * 16) + (1u << 20));
}

TEST(Keys, AreRefusedWhenTheyDoNotAscend) {
  const std::vector<uint64_t> good = {1, 2, 9}, twice = {1, 2, 2}, down = {3, 1};
  EXPECT_EQ(fault_of_keys(good, 0), "");
  EXPECT_EQ(fault_of_keys(good, 10), "");
  EXPECT_NE(fault_of_keys(good, 9), "");
  EXPECT_NE(fault_of_keys(twice, 0), "");
  EXPECT_NE(fault_of_keys(down, 0), "");
  EXPECT_EQ(fault_of_keys({}, 1), "");
}

TEST(Keys, AreSpreadEvenlyOverServers) {
  std::vector<uint64_t> keys(30'000);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = i;
  std::vector<std::vector<uint32_t>> positions;
  split_keys(keys, 3, positions);
  for (const auto& mine : positions) {
    EXPECT_NEAR(static_cast<double>(mine.size()), 10'000, 500);  // five deviations
    EXPECT_TRUE(std::is_sorted(mine.begin(), mine.end()));
  }
}

}  // namespace
}  // namespace tutti
