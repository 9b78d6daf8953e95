// Rows of floats by key: an open-addressing table with linear probing, whose memory grows with the
// keys that were ever written, whatever the range of keys.
//
// The table has the keys and the numbers of their rows; rows are numbered in the order in which
// they were made and lie in blocks that never move. A lookup costs two cache misses, one for the
// slot and one for the row, so whole lists of keys are looked up with both on their way before
// they are needed.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "sparse/keys.h"

namespace tutti {

class RowTable {
 public:
  // Writes the values that the row of a key starts with.
  using Initial = std::function<void(uint64_t key, std::span<float> row)>;
  static constexpr uint32_t kNone = UINT32_MAX;

  // Each row has `width` values and `state` more that only the owner sees and that start at zero.
  // Without `initial` values start at zero too.
  RowTable(size_t width, size_t state, Initial initial = nullptr);

  size_t size() const { return keys_.size(); }
  size_t width() const { return width_; }
  size_t memory_bytes() const;

  uint32_t find(uint64_t key) const;  // kNone: it was never made
  uint32_t find_or_make(uint64_t key);
  // By number: rows are 0 to size() - 1, in the order in which they were made.
  uint64_t key(uint32_t row) const { return keys_[row]; }
  std::span<const uint64_t> keys() const { return keys_; }
  std::span<float> values(uint32_t row) { return {data(row), width_}; }
  std::span<const float> values(uint32_t row) const { return {data(row), width_}; }
  std::span<float> state(uint32_t row) { return {data(row) + width_, stride_ - width_}; }
  std::span<float> values_and_state(uint32_t row) { return {data(row), stride_}; }

  // Calls visit(i, row) for the row of each keys[i], made if it is not there.
  template <class Visit>
  void update(std::span<const uint64_t> keys, const Visit& visit);
  // Copies the rows of the keys, one after the other; those not there as they would start.
  void read(std::span<const uint64_t> keys, std::span<float> rows) const;
  // The values that the row of this key starts with.
  void initial(uint64_t key, std::span<float> row) const;

 private:
  struct Slot {
    uint64_t key = 0;
    uint32_t row = kNone;
  };
  // Enough to have many misses under way, few enough that nothing is evicted before it is used.
  static constexpr size_t kBatch = 32;
  static constexpr size_t kBlockRows = 4096;

  float* data(uint32_t row) const {
    return blocks_[row / kBlockRows].get() + row % kBlockRows * stride_;
  }
  size_t home(uint64_t key) const { return mixed(key) & (slots_.size() - 1); }
  void grow();
  void fetch_slots(std::span<const uint64_t> keys) const {
    for (const uint64_t key : keys) __builtin_prefetch(&slots_[home(key)]);
  }
  void fetch_row(uint32_t row) const {
    const auto* begin = reinterpret_cast<const char*>(data(row));
    for (size_t byte = 0; byte < stride_ * sizeof(float); byte += 64)
      __builtin_prefetch(begin + byte, 1);
  }

  size_t width_, stride_;
  Initial initial_;
  std::vector<Slot> slots_;     // a power of two of them, at most half in use
  std::vector<uint64_t> keys_;  // of the rows
  std::vector<std::unique_ptr<float[]>> blocks_;
};

template <class Visit>
void RowTable::update(std::span<const uint64_t> keys, const Visit& visit) {
  std::array<uint32_t, kBatch> rows{};
  for (size_t begin = 0; begin < keys.size(); begin += kBatch) {
    const auto batch = keys.subspan(begin, std::min(kBatch, keys.size() - begin));
    fetch_slots(batch);
    for (size_t i = 0; i < batch.size(); ++i) {
      rows[i] = find_or_make(batch[i]);
      fetch_row(rows[i]);
    }
    for (size_t i = 0; i < batch.size(); ++i) visit(begin + i, rows[i]);
  }
}

}  // namespace tutti
