#include "strategies/parameter_server/gathering.h"

#include <algorithm>
#include <utility>

namespace tutti::parameter_server {

bool Gathering::has(const Hand& hand) const {
  return std::any_of(all_.begin(), all_.end(),
                     [&](const Gathered& gathered) { return gathered.push.hand == hand; });
}

void Gathering::forget(const GradientName& name) {
  std::erase_if(all_, [&](const Gathered& gathered) { return gathered.name() == name; });
}

std::vector<Gathered> Gathering::take_all() { return std::exchange(all_, {}); }

void Gathering::decide(int64_t version, std::span<const Decided> decided) {
  decisions_[version].assign(decided.begin(), decided.end());
}

Gathering::Choice Gathering::choose(int64_t version, size_t left_in_epoch) {
  const bool chooses = !consistency_.lockstep() && settings_.config.servers > 1;
  if (!chooses || settings_.coordinates()) return all_.empty() ? Choice{} : count(left_in_epoch);
  const auto decision = decisions_.find(version);
  return decision == decisions_.end() ? Choice{} : follow(decision->second);
}

Gathering::Choice Gathering::follow(std::vector<Decided>& decision) {
  if (decision.empty()) return {.kind = Choice::kEnd};
  if (settings_.sparse()) {
    forget_lost(decision);
    if (decision.empty()) return {.kind = Choice::kSkip};
  }
  Choice choice{.kind = Choice::kClose};
  for (const Decided& decided : decision)
    for (const Gathered& gathered : all_)
      if (gathered.push.hand == decided.hand) choice.chosen.push_back(gathered);
  if (choice.chosen.size() >= decision.size()) return choice;
  choice = {.kind = Choice::kRepeat};
  for (const Decided& decided : decision)
    if (!has(decided.hand) && !workers_[decided.worker].present)
      choice.missing.push_back(decided.hand);
  return choice;
}

Gathering::Choice Gathering::count(size_t left_in_epoch) const {
  const auto parts = static_cast<size_t>(all_.front().push.hand.parts);
  const size_t quorum =
      std::max<size_t>(1, consistency_.quorum(parts, workers_.active().size(), left_in_epoch));
  if (all_.size() >= quorum)
    return {.kind = Choice::kClose,
            .chosen = {all_.begin(), all_.begin() + static_cast<std::ptrdiff_t>(quorum)}};
  if (!workers_.everybody_waits()) return {};
  if (consistency_.lockstep()) return repeat_orphans();
  return {.kind = Choice::kClose, .chosen = all_};  // after losses: there will not be more
}

Gathering::Choice Gathering::repeat_orphans() const {
  // Shares of their own go with their workers; the step has to do without.
  // So do rows: who is left has not read those that the lost worker touched.
  if (settings_.task.partition != Partition::kGlobal || settings_.sparse())
    return {.kind = Choice::kClose, .chosen = all_};
  Choice choice{.kind = Choice::kRepeat};
  Hand hand = all_.front().push.hand;
  for (hand.part = 0; hand.part < hand.parts; ++hand.part)
    if (!has(hand)) choice.missing.push_back(hand);
  return choice;
}

// Of a sparse model nobody can repeat what a lost worker was to send here: the step does without.
void Gathering::forget_lost(std::vector<Decided>& decided) const {
  std::erase_if(decided, [&](const Decided& one) {
    return !workers_[one.worker].present && !has(one.hand);
  });
}

void Gathering::archive(Archive& archive) { archive(decisions_, all_); }

}  // namespace tutti::parameter_server
