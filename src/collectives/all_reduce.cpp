// Runs the rounds of a topology: post a round's receives and sends, combine what arrives, go on.
//
// Large transfers travel in segments, each combined as soon as it is there: it is still in the
// cache then, and the next ones are under way meanwhile. A few slots take them in turn, so that the
// cache is left to the values.
#include "collectives/all_reduce.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/bytes.h"
#include "fabric/exchange.h"

namespace tutti {
namespace {

constexpr size_t kSlots = 16;  // as many pieces as the fabric's queue between two nodes holds

std::vector<Transfer> segments_of(const std::vector<Transfer>& transfers, size_t element_bytes,
                                  const Endpoint& endpoint) {
  std::vector<Transfer> segments;
  for (const Transfer& transfer : transfers) {
    const size_t bytes = transfer.range.size() * element_bytes;
    const size_t most = endpoint.piece_bytes(transfer.peer) / element_bytes * element_bytes;
    const size_t parts = (bytes + most - 1) / most;
    for (size_t i = 0; i < parts; ++i) {
      const Range part = part_of(transfer.range.size(), parts, i);
      segments.push_back(
          {transfer.peer, {transfer.range.begin + part.begin, transfer.range.begin + part.end}});
    }
  }
  return segments;
}

// In-order rounds combine whole buffers at their end; all others go by segments.
Rounds segmented(Rounds rounds, size_t element_bytes, const Endpoint& endpoint) {
  for (Round& round : rounds) {
    if (round.action == Action::kCombineInOrder) continue;
    round.sends = segments_of(round.sends, element_bytes, endpoint);
    round.receives = segments_of(round.receives, element_bytes, endpoint);
  }
  return rounds;
}

class RoundsAllReduce : public AllReduce {
 public:
  RoundsAllReduce(Node& node, Stopwatch* watch, Rounds rounds, const Reduction& reduction)
      : node_(node),
        watch_(watch),
        rounds_(segmented(std::move(rounds), reduction.element_bytes, node.endpoint())),
        reduction_(reduction) {
    size_t most = 0;
    for (const Round& round : rounds_) most = std::max(most, scratch_elements(round));
    scratch_ = Buffer<std::byte>(most * reduction_.element_bytes);
  }

  void start(std::span<std::byte> data, Tag tag) override {
    data_ = data;
    tag_ = tag;
    round_ = 0;
    heard_ = false;
    post();
  }

  void advance() override {
    while (round_ < rounds_.size()) {
      for (size_t i = 0; i < handles_.size(); ++i)
        if (handles_[i].pending())
          if (const auto completion = node_.endpoint().test(handles_[i])) arrived(i, *completion);
      if (open_ > 0) return;
      end_round();
    }
  }

  void finish() override {
    PhaseScope scope(watch_, heard_ ? Phase::kCommunicate : Phase::kWait);
    while (round_ < rounds_.size()) {
      while (open_ > 0) {
        const auto [i, completion] = node_.endpoint().wait_any(handles_, node_.timeout_s());
        if (completion.state == State::kTimedOut) throw_late();
        arrived(i, completion);
        if (heard_) scope.change(Phase::kCommunicate);
      }
      end_round();
    }
  }

 private:
  // Receives that may be under way at once: a slot is free again when it has been combined.
  static size_t slots(const Round& round) {
    return round.action == Action::kCombine ? std::min(round.receives.size(), kSlots)
                                            : round.receives.size();
  }
  static size_t slot_elements(const Round& round) {
    size_t most = 0;
    for (const Transfer& receive : round.receives) most = std::max(most, receive.range.size());
    return most;
  }
  // Where the receives of a round wait until they are combined.
  static size_t scratch_elements(const Round& round) {
    return round.action == Action::kReplace ? 0 : slots(round) * slot_elements(round);
  }

  std::span<std::byte> bytes_at(Range range) {
    return data_.subspan(range.begin * reduction_.element_bytes,
                         range.size() * reduction_.element_bytes);
  }

  std::span<std::byte> destination(const Round& round, size_t index) {
    if (round.action == Action::kReplace) return bytes_at(round.receives[index].range);
    return scratch_.span().subspan(slot_of_[index] * slot_elements_ * reduction_.element_bytes,
                                   round.receives[index].range.size() * reduction_.element_bytes);
  }

  void post() {
    handles_.clear();
    open_ = 0;
    if (round_ == rounds_.size()) return;
    const Round& round = rounds_[round_];
    slot_elements_ = slot_elements(round);
    handles_.resize(round.receives.size());
    slot_of_.resize(round.receives.size());
    next_ = 0;
    while (next_ < slots(round)) receive_next(round, next_);
    for (const Transfer& send : round.sends)
      handles_.push_back(node_.endpoint().send(send.peer, tag_, bytes_at(send.range)));
    open_ = handles_.size();
  }

  // Where only costs count, messages still carry what the nodes decide by.
  Arithmetic arithmetic() const {
    return tag_.purpose() == Purpose::kControl ? Arithmetic() : node_.clock().arithmetic();
  }

  // In the order in which the peer sends, whichever slot became free.
  void receive_next(const Round& round, size_t slot) {
    slot_of_[next_] = slot;
    handles_[next_] =
        node_.endpoint().receive(round.receives[next_].peer, tag_, destination(round, next_));
    ++next_;
  }

  void arrived(size_t index, const Completion& completion) {
    const size_t bytes = require_done(node_, completion);
    const Round& round = rounds_[round_];
    --open_;
    if (index >= round.receives.size()) return;  // a send
    heard_ = true;
    const size_t expected = round.receives[index].range.size() * reduction_.element_bytes;
    if (bytes != expected)
      throw FabricError(FabricError::Kind::kProtocol, completion.peer,
                        fmt::format("rank {} sent {} bytes instead of {} for {}", completion.peer,
                                    bytes, expected, tag_.describe()));
    if (round.action != Action::kCombine) return;
    PhaseScope scope(watch_, Phase::kAggregate);
    arithmetic().perform([&] {
      reduction_.combine(bytes_at(round.receives[index].range).data(),
                         destination(round, index).data(), round.receives[index].range.size());
    });
    charge(bytes);
    if (next_ < round.receives.size()) receive_next(round, slot_of_[index]);
  }

  // What has arrived and what it is added to are read, and the sum is written. The buffers of both
  // ends pass through the caches meanwhile.
  void charge(size_t bytes) {
    node_.clock().charge({.flops = 0,
                          .memory_bytes = 3.0 * static_cast<double>(bytes),
                          .range_bytes = 2.0 * static_cast<double>(data_.size())});
  }

  void end_round() {
    const Round& round = rounds_[round_];
    if (round.action == Action::kCombineInOrder) {
      PhaseScope scope(watch_, Phase::kAggregate);
      arithmetic().perform([&] { combine_in_order(round); });
      charge(scratch_elements(round) * reduction_.element_bytes);
    }
    ++round_;
    post();
  }

  void combine_in_order(const Round& round) {
    // The sum runs through the scratch slots of the lower ranks, this node's own values and the
    // higher ranks. Receives are listed by rank and cover the same range.
    const size_t count = round.receives.front().range.size();
    const std::span<std::byte> own = bytes_at(round.receives.front().range);
    const Rank me = node_.endpoint().rank();
    size_t next = 0;
    std::byte* sum = own.data();
    if (round.receives.front().peer < me) {
      sum = destination(round, 0).data();
      for (next = 1; next < round.receives.size() && round.receives[next].peer < me; ++next)
        reduction_.combine(sum, destination(round, next).data(), count);
      reduction_.combine(sum, own.data(), count);
    }
    for (; next < round.receives.size(); ++next)
      reduction_.combine(sum, destination(round, next).data(), count);
    if (sum != own.data()) std::memcpy(own.data(), sum, own.size());
  }

  [[noreturn]] void throw_late() {
    // Name the peers that are late, not only the first.
    std::string late;
    Rank first = kAnyRank;
    const Round& round = rounds_[round_];
    for (size_t i = 0; i < handles_.size(); ++i) {
      if (!handles_[i].pending()) continue;
      const bool receiving = i < round.receives.size();
      const Rank peer =
          receiving ? round.receives[i].peer : round.sends[i - round.receives.size()].peer;
      if (first == kAnyRank) first = peer;
      late +=
          fmt::format("{}{} rank {}", late.empty() ? "" : ", ", receiving ? "from" : "to", peer);
    }
    throw FabricError(
        FabricError::Kind::kTimedOut, first,
        fmt::format("nothing moved {} for {} s (round {} of {}, {}); if that node is "
                    "only slow, raise cluster.timeout",
                    late, node_.timeout_s(), round_ + 1, rounds_.size(), tag_.describe()));
  }

  Node& node_;
  Stopwatch* watch_;
  const Rounds rounds_;
  const Reduction& reduction_;
  Buffer<std::byte> scratch_;
  std::span<std::byte> data_;
  Tag tag_;
  size_t round_ = 0;
  size_t slot_elements_ = 0;
  std::vector<size_t> slot_of_;  // by receive
  size_t next_ = 0;              // receive to post
  size_t open_ = 0;              // operations of this round that have not ended
  bool heard_ = false;  // something has arrived: from here on it is communication, not waiting
  std::vector<Handle> handles_;  // receives, then sends; last member: cancelled first
};

// With more members there are more rounds to a block, so that blocks grow with them.
constexpr size_t kMembersPerBlock = 4;

size_t grown(size_t block_bytes, size_t members) {
  return block_bytes * std::max(members, kMembersPerBlock) / kMembersPerBlock;
}

size_t block_bytes(const Endpoint& endpoint, const Group& group) {
  size_t least = kBlockBytes;
  for (const Rank rank : group.ranks) least = std::min(least, endpoint.block_bytes(rank));
  return grown(least, group.size());
}

}  // namespace

size_t most_under_way(size_t members) { return 2 * grown(kBlockBytes, members); }

Rounds rounds_between(const Endpoint& endpoint, RoundsOf topology, const Group& group, size_t count,
                      size_t element_bytes) {
  const size_t unit = block_unit(group);
  const size_t block = block_bytes(endpoint, group) / element_bytes / unit * unit;
  return block == 0 || count <= 2 * block ? topology(group, count)
                                          : in_blocks(topology, group, count, block);
}

std::unique_ptr<AllReduce> make_all_reduce(Node& node, Stopwatch* watch, RoundsOf topology,
                                           const Group& group, size_t count,
                                           const Reduction& reduction) {
  return make_all_reduce(
      node, watch, rounds_between(node.endpoint(), topology, group, count, reduction.element_bytes),
      reduction);
}

std::unique_ptr<AllReduce> make_all_reduce(Node& node, Stopwatch* watch, Rounds rounds,
                                           const Reduction& reduction) {
  return std::make_unique<RoundsAllReduce>(node, watch, std::move(rounds), reduction);
}

}  // namespace tutti
