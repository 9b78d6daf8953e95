// Everything that a server waits for at once, each receive with what it is for.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "fabric/node.h"

namespace tutti::parameter_server {

struct Arrival {
  enum Kind { kRequest, kEntry, kNotice, kLoss, kGradient, kUpdate, kSent } kind = kRequest;
  int shard = -1;
  Rank peer = kAnyRank;  // whose gradient or update
  uint64_t index = 0;    // kUpdate: of which entry; kSent: of which reply
  size_t bytes = 0;      // that are expected
};

class Inbox {
 public:
  explicit Inbox(Endpoint& endpoint) : endpoint_(endpoint) {}

  void expect(Rank from, Tag tag, std::span<std::byte> buffer, const Arrival& arrival) {
    handles_.push_back(endpoint_.receive(from, tag, buffer));
    arrivals_.push_back(arrival);
  }

  // A send whose end somebody waits for.
  void watch(Handle sending, const Arrival& arrival) {
    handles_.push_back(std::move(sending));
    arrivals_.push_back(arrival);
  }

  // The first that has ended, or nothing within this time.
  std::optional<std::pair<Arrival, Completion>> wait(double timeout_s) {
    const auto [index, completion] = endpoint_.wait_any(handles_, timeout_s);
    if (completion.state == State::kTimedOut) return std::nullopt;
    const Arrival arrival = arrivals_[index];
    remove(index);
    return std::pair(arrival, completion);
  }

  // Cancels those that nobody needs any more.
  void forget(const std::function<bool(const Arrival&)>& unwanted) {
    for (size_t i = handles_.size(); i-- > 0;)
      if (unwanted(arrivals_[i])) remove(i);
  }

 private:
  void remove(size_t index) {
    handles_[index] = std::move(handles_.back());
    handles_.pop_back();
    arrivals_[index] = arrivals_.back();
    arrivals_.pop_back();
  }

  Endpoint& endpoint_;
  std::vector<Handle> handles_;
  std::vector<Arrival> arrivals_;  // of the same index
};

}  // namespace tutti::parameter_server
