#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.h"
#include "core/random.h"
#include "data/readers.h"

namespace tutti {
namespace {

// One seed for all: the split belongs to the data, not to the run. "tutti" in ASCII.
constexpr uint64_t kSplitSeed = 0x7475747469;

// `share` of `total` samples; at least one where the share asks for any.
size_t part(double share, size_t total) {
  if (share <= 0) return 0;
  return std::max<size_t>(1, static_cast<size_t>(std::llround(share * static_cast<double>(total))));
}

// Moves the last `count` samples of `from` out of it.
std::vector<uint32_t> take_last(std::vector<uint32_t>& from, size_t count) {
  count = std::min(count, from.size());
  std::vector<uint32_t> taken(from.end() - static_cast<std::ptrdiff_t>(count), from.end());
  from.resize(from.size() - count);
  return taken;
}

}  // namespace

Splits make_splits(const Source& source, const DataConfig& config) {
  const size_t size = source.dataset->size();
  if (size > UINT32_MAX)
    throw DataError(fmt::format("the data has {} samples; at most 2^32 are supported", size));
  Splits splits;
  splits.train.resize(source.test_from);
  std::iota(splits.train.begin(), splits.train.end(), 0u);
  if (!source.sequential) Random(kSplitSeed, Stream::kSplit).shuffle(splits.train);
  if (source.test_from < size) {
    splits.test.resize(size - source.test_from);
    std::iota(splits.test.begin(), splits.test.end(), static_cast<uint32_t>(source.test_from));
  } else {
    splits.test = take_last(splits.train, part(config.test, size));
  }
  splits.validation = take_last(splits.train, part(validation_share(config), splits.train.size()));
  for (std::vector<uint32_t>* split : {&splits.train, &splits.validation, &splits.test}) {
    if (config.limit > 0 && split->size() > static_cast<size_t>(config.limit))
      split->resize(static_cast<size_t>(config.limit));
    // In the order of the file: neighbours in memory are read together.
    std::sort(split->begin(), split->end());
  }
  if (splits.train.empty())
    throw ConfigError("task.data.validation",
                      fmt::format("of {} samples none are left to train on; lower "
                                  "task.data.validation or task.data.test",
                                  size));
  return splits;
}

}  // namespace tutti
