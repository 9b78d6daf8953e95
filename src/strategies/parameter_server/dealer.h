// Deals the samples of a run to workers, hand by hand, and takes back what was not learnt from.
//
// In lockstep every step is cut into as many parts as there are workers, so that a lost worker's
// share goes to the others. Otherwise whoever asks gets the next hand. With shares of their own
// (task.partition other than "global") workers draw from those alone, and from the shares of
// workers that are gone when theirs are used up.
#pragma once

#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "core/archive.h"
#include "strategies/parameter_server/messages.h"
#include "strategies/timetable.h"

namespace tutti::parameter_server {

class Dealer {
 public:
  Dealer(const Timetable& timetable, int workers, int64_t pull_every, bool own_shares);

  // In lockstep: a hand for each of `members`; false when there is nothing left.
  bool deal_round(const std::vector<int>& members);
  std::optional<Hand> of_round(int worker);  // once each round

  // One by one. `within_epoch`: an epoch begins only when every hand of the one before is accepted;
  // until then whoever is idle gets a copy of what others are computing.
  std::optional<Hand> draw(int worker, bool within_epoch);
  // The worker's gradient of its next `steps` steps was applied. False if a copy of it was before.
  bool accept(int worker, const Hand& hand, int64_t steps);
  void drop(int worker, const Hand& hand);  // it was not: it comes back in a later hand
  void lose(int worker);                    // and all that it had under way
  size_t left() const { return left_; }     // hands of this epoch that are not accepted
  bool exhausted() const;                   // nothing left to draw
  // What is left to deal, for a snapshot; in lockstep before the round that follows is dealt.
  std::vector<int64_t> save() const;
  bool restore(std::span<const int64_t> saved);  // false: it was of another cluster
  void archive(Archive& archive);                // everything, for a replica

 private:
  struct Position {
    int64_t epoch = 0, step = 0;
    int32_t part = 0;
    int32_t unused = 0;  // instead of padding: equal positions are equal bytes
  };
  // Skips to the next epoch with steps. A hand may continue into later epochs.
  std::optional<Hand> block_at(Position& position) const;
  std::optional<Hand> next_of(Position& position, bool own);
  std::optional<Hand> rarest() const;
  int holders(const Hand& hand) const;

  const Timetable& timetable_;
  int workers_;
  int64_t pull_every_;
  bool own_shares_;
  Position position_;
  std::vector<Position> own_;  // own_shares: of each worker
  std::vector<bool> gone_;
  std::vector<std::deque<Hand>> under_way_;  // by worker
  std::deque<Hand> returned_;
  std::vector<std::optional<Hand>> round_;
  int64_t epoch_ = -1;  // within_epoch: the one that is dealt
  size_t left_ = 0;
};

}  // namespace tutti::parameter_server
