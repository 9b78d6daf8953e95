#include "strategies/parameter_server/dealer.h"

#include <algorithm>
#include <utility>

namespace tutti::parameter_server {

Dealer::Dealer(const Timetable& timetable, int workers, int64_t pull_every, bool own_shares)
    : timetable_(timetable),
      workers_(workers),
      pull_every_(pull_every),
      own_shares_(own_shares),
      own_(static_cast<size_t>(workers)),
      gone_(static_cast<size_t>(workers)),
      under_way_(static_cast<size_t>(workers)),
      round_(static_cast<size_t>(workers)) {
  for (int worker = 0; worker < workers; ++worker) own_[static_cast<size_t>(worker)].part = worker;
}

std::optional<Hand> Dealer::block_at(Position& position) const {
  Hand hand =
      timetable_.normal(Hand{static_cast<int32_t>(position.epoch),
                             static_cast<int32_t>(position.step), 0, position.part, workers_});
  position.epoch = hand.epoch;
  position.step = hand.step;
  if (position.epoch >= timetable_.epochs()) return std::nullopt;
  hand.steps = pull_every_ == 1
                   ? 1
                   : static_cast<int32_t>(timetable_.left_from(hand.epoch, hand.step, pull_every_));
  return hand;
}

std::optional<Hand> Dealer::next_of(Position& position, bool own) {
  const std::optional<Hand> hand = block_at(position);
  if (!hand) return hand;
  if (!own && ++position.part < workers_) return hand;
  if (!own) position.part = 0;
  position.step += hand->steps;
  return hand;
}

bool Dealer::deal_round(const std::vector<int>& members) {
  const std::optional<Hand> block = block_at(position_);
  if (!block) return false;
  position_.step += block->steps;
  std::fill(round_.begin(), round_.end(), std::nullopt);
  for (size_t i = 0; i < members.size(); ++i) {
    Hand hand = *block;
    hand.part = own_shares_ ? members[i] : static_cast<int32_t>(i);
    hand.parts = static_cast<int32_t>(members.size());
    round_[static_cast<size_t>(members[i])] = hand;
  }
  return true;
}

std::optional<Hand> Dealer::of_round(int worker) {
  return std::exchange(round_[static_cast<size_t>(worker)], std::nullopt);
}

int Dealer::holders(const Hand& hand) const {
  int count = 0;
  for (const std::deque<Hand>& hands : under_way_)
    count += static_cast<int>(std::count(hands.begin(), hands.end(), hand));
  return count;
}

// Of what the fewest are computing.
std::optional<Hand> Dealer::rarest() const {
  std::optional<Hand> found;
  for (const std::deque<Hand>& hands : under_way_)
    for (const Hand& hand : hands)
      if (!found || holders(hand) < holders(*found)) found = hand;
  return found;
}

std::optional<Hand> Dealer::draw(int worker, bool within_epoch) {
  std::optional<Hand> hand;
  const auto self = static_cast<size_t>(worker);
  if (own_shares_) hand = next_of(own_[self], true);
  if (!hand && !returned_.empty()) {
    hand = returned_.front();
    returned_.pop_front();
  }
  for (size_t other = 0; own_shares_ && !hand && other < gone_.size(); ++other)
    if (gone_[other]) hand = next_of(own_[other], true);
  if (!hand && !own_shares_) {
    const std::optional<Hand> next = block_at(position_);
    if (within_epoch && next && next->epoch != epoch_ && left_ == 0) {
      epoch_ = next->epoch;
      left_ = static_cast<size_t>(timetable_.steps(epoch_) * workers_);
    }
    if (!within_epoch || (next && next->epoch == epoch_))
      hand = next_of(position_, false);
    else
      hand = rarest();
  }
  if (hand) under_way_[self].push_back(*hand);
  return hand;
}

bool Dealer::accept(int worker, const Hand& hand, int64_t steps) {
  std::deque<Hand>& mine = under_way_[static_cast<size_t>(worker)];
  if (pull_every_ == 1) {
    const auto found = std::find(mine.begin(), mine.end(), hand);
    if (found == mine.end()) return false;
    for (std::deque<Hand>& hands : under_way_) std::erase(hands, hand);  // copies as well
    std::erase(returned_, hand);
    if (left_ > 0) --left_;
    return true;
  }
  while (steps > 0 && !mine.empty()) {
    const auto taken = static_cast<int32_t>(std::min<int64_t>(steps, mine.front().steps));
    mine.front().step += taken;
    mine.front().steps -= taken;
    mine.front() = timetable_.normal(mine.front());
    steps -= taken;
    if (mine.front().steps == 0) mine.pop_front();
  }
  return true;
}

void Dealer::drop(int worker, const Hand& hand) {
  std::deque<Hand>& mine = under_way_[static_cast<size_t>(worker)];
  const auto found = std::find(mine.begin(), mine.end(), hand);
  if (found == mine.end()) return;  // a copy of it was accepted
  mine.erase(found);
  if (holders(hand) == 0) returned_.push_back(hand);
}

void Dealer::lose(int worker) {
  std::deque<Hand>& hands = under_way_[static_cast<size_t>(worker)];
  for (const Hand& hand : std::exchange(hands, {}))
    if (holders(hand) == 0) returned_.push_back(hand);
  round_[static_cast<size_t>(worker)] = std::nullopt;
  gone_[static_cast<size_t>(worker)] = true;
}

std::vector<int64_t> Dealer::save() const {
  std::vector<int64_t> saved = {workers_, epoch_, static_cast<int64_t>(left_)};
  const auto add = [&](const Position& position) {
    saved.insert(saved.end(), {position.epoch, position.step, position.part});
  };
  add(position_);
  for (const Position& position : own_) add(position);
  std::vector<Hand> hands(returned_.begin(), returned_.end());  // whoever had them has to ask anew
  for (const std::deque<Hand>& under_way : under_way_)
    hands.insert(hands.end(), under_way.begin(), under_way.end());
  std::sort(hands.begin(), hands.end());
  hands.erase(std::unique(hands.begin(), hands.end()), hands.end());
  for (const Hand& hand : hands)
    saved.insert(saved.end(), {hand.epoch, hand.step, hand.steps, hand.part, hand.parts});
  return saved;
}

bool Dealer::restore(std::span<const int64_t> saved) {
  constexpr size_t kPosition = 3, kHand = 5;
  const size_t fixed = 3 + kPosition * (1 + own_.size());
  if (saved.size() < fixed || (saved.size() - fixed) % kHand != 0 || saved[0] != workers_)
    return false;
  epoch_ = saved[1];
  left_ = static_cast<size_t>(saved[2]);
  const auto position = [&](size_t i) {
    const std::span<const int64_t> at = saved.subspan(3 + kPosition * i, kPosition);
    return Position{at[0], at[1], static_cast<int>(at[2])};
  };
  position_ = position(0);
  for (size_t i = 0; i < own_.size(); ++i) own_[i] = position(i + 1);
  for (std::span<const int64_t> h = saved.subspan(fixed); !h.empty(); h = h.subspan(kHand))
    returned_.push_back({static_cast<int32_t>(h[0]), static_cast<int32_t>(h[1]),
                         static_cast<int32_t>(h[2]), static_cast<int32_t>(h[3]),
                         static_cast<int32_t>(h[4])});
  return true;
}

void Dealer::archive(Archive& archive) {
  archive(position_, own_, gone_, returned_, round_, epoch_, left_);
  for (std::deque<Hand>& hands : under_way_) archive(hands);
}

bool Dealer::exhausted() const {
  Position position = position_;
  if (!returned_.empty()) return false;
  return !own_shares_ && !block_at(position);
}

}  // namespace tutti::parameter_server
