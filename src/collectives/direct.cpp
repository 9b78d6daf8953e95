// All-reduce in shared memory: each member sums its part of everybody's buffer in place.
//
// Two counters per member order it: "my values are ready" and "my part is summed". Nothing is
// copied and nothing is sent; every value is read once and the result written once per member.
#include <fmt/format.h>

#include <atomic>

#include "collectives/all_reduce.h"
#include "fabric/exchange.h"

namespace tutti {
namespace {

constexpr int kReadySlot = 0;
constexpr int kSummedSlot = 1;
constexpr int kLooks = 32;  // about 40 ns

// A small sum takes a quarter of a microsecond, so what does not change is asked for once.
class DirectAllReduce : public AllReduce {
 public:
  DirectAllReduce(Node& node, Stopwatch* watch, Window& window, const Reduction& reduction)
      : node_(node),
        watch_(watch),
        window_(window),
        reduction_(reduction),
        me_(static_cast<size_t>(node.endpoint().rank())),
        timeout_s_(node.timeout_s()),
        arithmetic_(node.clock().arithmetic()),
        charged_(node.clock().simulated()) {
    const auto size = static_cast<size_t>(node.endpoint().size());
    for (size_t rank = 0; rank < size; ++rank)
      bases_.push_back(window.of(static_cast<Rank>(rank)).data());
    for (const int slot : {kReadySlot, kSummedSlot})
      for (size_t rank = 0; rank < size; ++rank)
        counters_.push_back(window.slot(static_cast<Rank>(rank), slot));
    parts_.resize(size);
  }

  void start(std::span<std::byte> data, Tag tag) override {
    if (data.data() != data_.data() || data.size() != data_.size()) find_parts(data);
    tag_ = tag;
    window_.post(kReadySlot, ++operations_);
  }

  // Nothing to do: the sum itself is shorter than the time it takes to look.
  void advance() override {}

  void finish() override {
    PhaseScope scope(watch_, Phase::kWait);
    await_all(kReadySlot);
    scope.change(Phase::kAggregate);
    arithmetic_.perform([&] { reduction_.combine_all(parts_, part_size_); });
    if (charged_) charge();
    window_.post(kSummedSlot, operations_);
    scope.change(Phase::kCommunicate);
    await_all(kSummedSlot);
  }

 private:
  void find_parts(std::span<std::byte> data) {
    data_ = data;
    const Range part = part_of(data.size() / reduction_.element_bytes, bases_.size(), me_);
    const auto offset = static_cast<size_t>(data.data() - bases_[me_]);
    for (size_t rank = 0; rank < bases_.size(); ++rank)
      parts_[rank] = bases_[rank] + offset + part.begin * reduction_.element_bytes;
    part_size_ = part.size();
  }

  // Every value is read, and the sum written, once for each member.
  void charge() {
    const auto bytes = static_cast<double>(part_size_ * reduction_.element_bytes);
    node_.clock().charge({.flops = 0,
                          .memory_bytes = 2.0 * bytes * static_cast<double>(bases_.size()),
                          .range_bytes = static_cast<double>(data_.size() * bases_.size())});
  }

  void await_all(int slot) {
    for (size_t rank = 0; rank < bases_.size(); ++rank) {
      if (rank == me_ || seen(rank, slot)) continue;
      Completion completion = window_.await(static_cast<Rank>(rank), slot, operations_, timeout_s_);
      completion.tag = tag_;
      require_done(node_, completion);
    }
  }

  // Looks a few times without a call, which takes a twentieth of a small sum.
  bool seen(size_t rank, int slot) const {
    const std::atomic<uint64_t>* counter =
        counters_[static_cast<size_t>(slot) * bases_.size() + rank];
    for (int looks = counter ? kLooks : 0; looks > 0; --looks)
      if (counter->load(std::memory_order_acquire) >= operations_) return true;
    return false;
  }

  Node& node_;
  Stopwatch* watch_;
  Window& window_;
  const Reduction& reduction_;
  const size_t me_;
  const double timeout_s_;
  const Arithmetic arithmetic_;
  const bool charged_;
  std::vector<std::byte*> bases_;                       // of each member's buffer
  std::vector<const std::atomic<uint64_t>*> counters_;  // of each member, slot by slot; or null
  std::span<std::byte> data_;  // what was summed last, and where this member's part of it is
  std::vector<std::byte*> parts_;
  size_t part_size_ = 0;
  Tag tag_;
  uint64_t operations_ = 0;
};

}  // namespace

std::unique_ptr<AllReduce> make_direct_all_reduce(Node& node, Stopwatch* watch, Window& window,
                                                  const Reduction& reduction) {
  return std::make_unique<DirectAllReduce>(node, watch, window, reduction);
}

}  // namespace tutti
