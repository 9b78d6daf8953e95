#include "sparse/row_table.h"

#include "core/error.h"

namespace tutti {
namespace {

constexpr size_t kFirstSlots = 64;

}  // namespace

RowTable::RowTable(size_t width, size_t state, Initial initial)
    : width_(width), stride_(width + state), initial_(std::move(initial)), slots_(kFirstSlots) {
  TUTTI_CHECK(width > 0);
}

size_t RowTable::memory_bytes() const {
  return slots_.capacity() * sizeof(Slot) + keys_.capacity() * sizeof(uint64_t) +
         blocks_.size() * kBlockRows * stride_ * sizeof(float);
}

uint32_t RowTable::find(uint64_t key) const {
  for (size_t i = home(key);; i = (i + 1) & (slots_.size() - 1)) {
    const Slot& slot = slots_[i];
    if (slot.row == kNone || slot.key == key) return slot.row;
  }
}

uint32_t RowTable::find_or_make(uint64_t key) {
  size_t i = home(key);
  for (; slots_[i].row != kNone; i = (i + 1) & (slots_.size() - 1))
    if (slots_[i].key == key) return slots_[i].row;
  const auto row = static_cast<uint32_t>(keys_.size());
  TUTTI_CHECK(row != kNone);
  if (row % kBlockRows == 0) blocks_.push_back(std::make_unique<float[]>(kBlockRows * stride_));
  slots_[i] = {key, row};
  keys_.push_back(key);
  if (initial_) initial_(key, values(row));
  if (keys_.size() * 2 > slots_.size()) grow();
  return row;
}

void RowTable::grow() {
  slots_.assign(slots_.size() * 2, Slot{});
  for (uint32_t row = 0; row < keys_.size(); ++row) {
    size_t i = home(keys_[row]);
    while (slots_[i].row != kNone) i = (i + 1) & (slots_.size() - 1);
    slots_[i] = {keys_[row], row};
  }
}

void RowTable::read(std::span<const uint64_t> keys, std::span<float> rows) const {
  TUTTI_CHECK(rows.size() == keys.size() * width_);
  std::array<uint32_t, kBatch> found{};
  for (size_t begin = 0; begin < keys.size(); begin += kBatch) {
    const auto batch = keys.subspan(begin, std::min(kBatch, keys.size() - begin));
    fetch_slots(batch);
    for (size_t i = 0; i < batch.size(); ++i) {
      found[i] = find(batch[i]);
      if (found[i] != kNone) fetch_row(found[i]);
    }
    for (size_t i = 0; i < batch.size(); ++i) {
      const std::span<float> to = rows.subspan((begin + i) * width_, width_);
      if (found[i] == kNone)
        initial(batch[i], to);
      else
        std::copy_n(data(found[i]), width_, to.data());
    }
  }
}

void RowTable::initial(uint64_t key, std::span<float> row) const {
  std::fill(row.begin(), row.end(), 0.0F);
  if (initial_) initial_(key, row);
}

}  // namespace tutti
