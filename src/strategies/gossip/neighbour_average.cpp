#include "strategies/gossip/neighbour_average.h"

#include <algorithm>
#include <array>

#include "fabric/exchange.h"

namespace tutti {

NeighbourAverage::NeighbourAverage(Node& node, Stopwatch* watch, const GraphEntry& graph,
                                   uint64_t seed, size_t count)
    : node_(node), watch_(watch), graph_(graph), seed_(seed), count_(count) {}

void NeighbourAverage::start(std::span<float> values, uint64_t round) {
  values_ = values;
  Endpoint& endpoint = node_.endpoint();
  mixing_ = graph_.mixing(static_cast<size_t>(endpoint.size()),
                          static_cast<size_t>(endpoint.rank()), round, seed_);
  while (arrived_.size() < mixing_.from.size()) arrived_.emplace_back(count_);
  const Tag tag(Purpose::kParameters, Tag::wrapped(round));
  for (size_t i = 0; i < mixing_.from.size(); ++i)
    handles_.push_back(endpoint.receive(static_cast<Rank>(mixing_.from[i].worker), tag,
                                        writable_bytes_of(arrived_[i].span())));
  for (const size_t to : mixing_.to)
    handles_.push_back(endpoint.send(static_cast<Rank>(to), tag, bytes_of<float>(values)));
}

void NeighbourAverage::advance() {
  for (Handle& handle : handles_)
    if (handle.pending())
      if (const auto completion = node_.endpoint().test(handle)) require_done(node_, *completion);
}

void NeighbourAverage::finish() {
  PhaseScope scope(watch_, Phase::kWait);
  for (Handle& handle : handles_) {
    if (handle.pending()) tutti::finish(node_, handle);
    scope.change(Phase::kCommunicate);
  }
  handles_.clear();
  scope.change(Phase::kAggregate);
  node_.clock().arithmetic().perform([&] { combine(); });
  const double passes = 3.0 * static_cast<double>(mixing_.from.size()) + 2;
  node_.clock().charge(
      {.flops = 0, .memory_bytes = passes * static_cast<double>(count_ * sizeof(float))});
}

// By rank, one's own values in their place: who hears the same gets bitwise the same. In blocks, so
// that the sum stays in the cache.
void NeighbourAverage::combine() {
  std::array<float, 1024> sum{};
  const auto me = static_cast<size_t>(node_.endpoint().rank());
  for (size_t begin = 0; begin < count_; begin += sum.size()) {
    const size_t size = std::min(sum.size(), count_ - begin);
    std::fill_n(sum.begin(), size, 0.0f);
    const auto add = [&](const float* values, double weight) {
      const auto share = static_cast<float>(weight);
      for (size_t k = 0; k < size; ++k) sum[k] += share * values[begin + k];
    };
    bool added = false;
    for (size_t i = 0; i < mixing_.from.size(); ++i) {
      if (!added && mixing_.from[i].worker > me) {
        add(values_.data(), mixing_.own);
        added = true;
      }
      add(arrived_[i].data(), mixing_.from[i].weight);
    }
    if (!added) add(values_.data(), mixing_.own);
    std::copy_n(sum.begin(), size, values_.data() + begin);
  }
}

}  // namespace tutti
