// One round: who was asked, who has answered, and when it is over. Knows nothing of messages.
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <vector>

namespace tutti::federated_averaging {

class Round {
 public:
  struct Limits {
    size_t wanted = 1;  // answers after which nobody else is waited for
    size_t quorum = 1;  // answers without which it changes nothing
    double closes_at_s = std::numeric_limits<double>::infinity();
  };
  // `clients` in the order they were drawn, which is that of their places; `samples` of each.
  // Those with most work begin first, so that workers end at about the same time, unless the round
  // may close early: then whoever has little would have an advantage.
  Round(int64_t number, std::vector<int64_t> clients, const std::vector<size_t>& samples,
        const Limits& limits, bool largest_first);

  int64_t number() const { return number_; }
  size_t size() const { return clients_.size(); }
  int64_t client(size_t place) const { return clients_[place]; }

  // The place of a client that nobody works for yet.
  std::optional<size_t> next();
  void put_back(size_t place);  // its worker was lost
  bool begun(size_t place) const { return begun_[place]; }
  void answered() {
    ++answered_;
    --under_way_;
  }
  void dropped() {
    ++dropped_;
    --under_way_;
  }

  // With its quorum a round is over when nobody else is waited for, or at its time. Without, it
  // goes on beyond its time until it has it or everybody has answered or dropped out.
  bool over(double now_s) const;
  double closes_at_s() const { return limits_.closes_at_s; }
  bool counts() const { return answers() >= limits_.quorum; }
  size_t answers() const { return answered_; }
  size_t missing() const { return clients_.size() - answered_ - dropped_; }
  bool has_enough() const { return answered_ >= limits_.wanted; }

 private:
  int64_t number_;
  std::vector<int64_t> clients_;
  Limits limits_;
  std::deque<size_t> waiting_;
  std::vector<bool> begun_;
  size_t under_way_ = 0, answered_ = 0, dropped_ = 0;
};

}  // namespace tutti::federated_averaging
