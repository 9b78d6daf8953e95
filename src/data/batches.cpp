#include "data/batches.h"

#include <algorithm>

#include "core/error.h"
#include "core/random.h"

namespace tutti {
namespace {

// Sequences of Stream::kShuffle within an epoch.
constexpr uint32_t kWhole = 0;       // the order of all samples
constexpr uint32_t kFirstShare = 1;  // the order within the share of worker 0, 1, ...

// How many of the first `dealt` samples worker `worker` gets when they are dealt like cards. Never
// falls as `dealt` grows, so the cards of a step are those between its two ends.
size_t hand(size_t dealt, size_t workers, size_t worker) {
  return part_of(dealt, workers, worker).size();
}

}  // namespace

Batches::Batches(std::span<const uint32_t> train, Partition partition, int64_t workers,
                 uint64_t seed, bool shuffled)
    : train_(train), partition_(partition), workers_(workers), seed_(seed), shuffled_(shuffled) {
  TUTTI_CHECK(workers >= 1);
  if (partition_ == Partition::kGlobal) return;
  // Which samples a worker keeps is drawn once; the order of the file may be that of the classes.
  if (partition_ == Partition::kDisjoint && shuffled_) {
    dealt_.assign(train_.begin(), train_.end());
    Random(seed_, Stream::kSplit).shuffle(dealt_);
    train_ = dealt_;
  }
  for (int64_t worker = 0; worker < workers_; ++worker)
    shares_.push_back(
        part_of(train_.size(), static_cast<size_t>(workers_), static_cast<size_t>(worker)));
}

void Batches::begin_epoch(int64_t epoch, int64_t global_batch) {
  TUTTI_CHECK(epoch >= 0 && global_batch >= 1);
  global_batch_ = global_batch;
  if (!shuffled_) return;
  order_.assign(train_.begin(), train_.end());
  const auto number = static_cast<uint32_t>(epoch);
  if (partition_ != Partition::kDisjoint) {
    Random(seed_, Stream::kShuffle, number, kWhole).shuffle(order_);
    return;
  }
  for (size_t worker = 0; worker < shares_.size(); ++worker)
    Random(seed_, Stream::kShuffle, number, kFirstShare + static_cast<uint32_t>(worker))
        .shuffle(std::span(order_).subspan(shares_[worker].begin, shares_[worker].size()));
}

int64_t Batches::steps() const {
  const auto samples = static_cast<int64_t>(train_.size());
  return samples / global_batch_ + (samples % global_batch_ != 0 ? 1 : 0);
}

std::span<const uint32_t> Batches::samples() const {
  return shuffled_ ? std::span<const uint32_t>(order_) : train_;
}

Range Batches::span_of(int64_t step) const {
  TUTTI_CHECK(samples().size() == train_.size());  // an epoch has begun
  TUTTI_CHECK(step >= 0 && step < steps());
  const auto begin = static_cast<size_t>(step * global_batch_);
  return {begin, begin + std::min(static_cast<size_t>(global_batch_), train_.size() - begin)};
}

std::vector<uint32_t> Batches::global(int64_t step) const {
  std::vector<uint32_t> all;
  all.reserve(static_cast<size_t>(count(step)));
  for (int64_t worker = 0; worker < workers_; ++worker) {
    const auto part = share(step, worker);
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

std::span<const uint32_t> Batches::share(int64_t step, int64_t worker) const {
  TUTTI_CHECK(worker >= 0 && worker < workers_);
  const Range batch = span_of(step);
  const auto workers = static_cast<size_t>(workers_), self = static_cast<size_t>(worker);
  if (partition_ == Partition::kGlobal) return part(step, part_of(batch.size(), workers, self));
  const size_t begin = hand(batch.begin, workers, self), end = hand(batch.end, workers, self);
  return samples().subspan(shares_[self].begin + begin, end - begin);
}

int64_t Batches::count(int64_t step) const { return static_cast<int64_t>(span_of(step).size()); }

std::span<const uint32_t> Batches::lane(int64_t step, int64_t lane, int64_t lanes) const {
  TUTTI_CHECK(partition_ == Partition::kGlobal && lane >= 0 && lane < lanes);
  return part(step,
              part_of(span_of(step).size(), static_cast<size_t>(lanes), static_cast<size_t>(lane)));
}

std::span<const uint32_t> Batches::part(int64_t step, Range within) const {
  const Range batch = span_of(step);
  TUTTI_CHECK(partition_ == Partition::kGlobal && within.end <= batch.size());
  return samples().subspan(batch.begin + within.begin, within.size());
}

}  // namespace tutti
