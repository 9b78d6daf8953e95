// All-reduce in shared memory: each member sums its part of everybody's buffer in place.
//
// Two counters per member order it: "my values are ready" and "my part is summed". Nothing is
// copied and nothing is sent; every value is read once and the result written once per member.
#include <fmt/format.h>

#include "collectives/all_reduce.h"
#include "fabric/exchange.h"

namespace tutti {
namespace {

constexpr int kReadySlot = 0;
constexpr int kSummedSlot = 1;

class DirectAllReduce : public AllReduce {
 public:
  DirectAllReduce(Node& node, Stopwatch* watch, Window& window, const Reduction& reduction)
      : node_(node), watch_(watch), window_(window), reduction_(reduction) {
    const auto size = static_cast<size_t>(node.endpoint().size());
    for (size_t rank = 0; rank < size; ++rank)
      bases_.push_back(window.of(static_cast<Rank>(rank)).data());
    parts_.resize(size);
  }

  void start(std::span<std::byte> data, Tag tag) override {
    offset_ = static_cast<size_t>(data.data() - bases_[me()]);
    count_ = data.size() / reduction_.element_bytes;
    tag_ = tag;
    window_.post(kReadySlot, ++operations_);
  }

  // Nothing to do: the sum itself is shorter than the time it takes to look.
  void advance() override {}

  void finish() override {
    PhaseScope scope(watch_, Phase::kWait);
    await_all(kReadySlot);
    scope.change(Phase::kAggregate);
    sum_own_part();
    window_.post(kSummedSlot, operations_);
    scope.change(Phase::kCommunicate);
    await_all(kSummedSlot);
  }

 private:
  size_t me() const { return static_cast<size_t>(node_.endpoint().rank()); }

  void sum_own_part() {
    const Range part = part_of(count_, bases_.size(), me());
    const size_t begin = offset_ + part.begin * reduction_.element_bytes;
    for (size_t rank = 0; rank < bases_.size(); ++rank) parts_[rank] = bases_[rank] + begin;
    if (!node_.clock().cost_only()) reduction_.combine_all(parts_, part.size());
    const auto bytes = static_cast<double>(part.size() * reduction_.element_bytes);
    node_.clock().charge(
        {.flops = 0, .memory_bytes = 2.0 * bytes * static_cast<double>(bases_.size())});
  }

  void await_all(int slot) {
    for (size_t rank = 0; rank < bases_.size(); ++rank) {
      if (rank == me()) continue;
      Completion completion =
          window_.await(static_cast<Rank>(rank), slot, operations_, node_.timeout_s());
      completion.tag = tag_;
      require_done(node_, completion);
    }
  }

  Node& node_;
  Stopwatch* watch_;
  Window& window_;
  const Reduction& reduction_;
  std::vector<std::byte*> bases_;  // of each member's buffer
  std::vector<std::byte*> parts_;
  size_t offset_ = 0;
  size_t count_ = 0;
  Tag tag_;
  uint64_t operations_ = 0;
};

}  // namespace

std::unique_ptr<AllReduce> make_direct_all_reduce(Node& node, Stopwatch* watch, Window& window,
                                                  const Reduction& reduction) {
  return std::make_unique<DirectAllReduce>(node, watch, window, reduction);
}

}  // namespace tutti
