// Shards of a model on threads of this process, with groups that add in memory: no network.
#pragma once

#include <barrier>
#include <functional>
#include <thread>
#include <vector>

#include "models/shard.h"

namespace tutti {

// One member's view of a group whose values are added in the order of the shards.
class ThreadGroup : public ShardGroup {
 public:
  struct Shared {
    explicit Shared(size_t count) : spans(count), gate(static_cast<ptrdiff_t>(count)) {}
    std::vector<std::span<float>> spans;
    std::barrier<> gate;
  };
  ThreadGroup(Shared& shared, size_t index) : shared_(shared), index_(index) {}

  void sum(std::span<float> values) override {
    ++sums;
    reduce(values, [](float a, float b) { return a + b; });
  }
  void maximum(std::span<float> values) override {
    reduce(values, [](float a, float b) { return a > b ? a : b; });
  }

  int sums = 0;

 private:
  template <class Combine>
  void reduce(std::span<float> values, Combine combine) {
    shared_.spans[index_] = values;
    shared_.gate.arrive_and_wait();
    std::vector<float> result(shared_.spans[0].begin(), shared_.spans[0].end());
    for (size_t shard = 1; shard < shared_.spans.size(); ++shard)
      for (size_t i = 0; i < result.size(); ++i)
        result[i] = combine(result[i], shared_.spans[shard][i]);
    shared_.gate.arrive_and_wait();
    std::copy(result.begin(), result.end(), values.begin());
  }

  Shared& shared_;
  size_t index_;
};

// Runs `work` once for each shard, all at once.
inline void on_shards(size_t count, const std::function<void(size_t index, ThreadGroup&)>& work) {
  ThreadGroup::Shared shared(count);
  std::vector<std::jthread> threads;
  for (size_t index = 0; index < count; ++index)
    threads.emplace_back([&, index] {
      ThreadGroup group(shared, index);
      work(index, group);
    });
}

}  // namespace tutti
