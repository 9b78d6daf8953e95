#include "strategies/parameter_server/versions.h"

#include <algorithm>
#include <utility>

namespace tutti::parameter_server {

Versions::Versions(const StateSettings& settings, const Timetable& timetable,
                   const Consistency& consistency, const Roster& workers, Coordinator* coordinator)
    : settings_(settings),
      timetable_(timetable),
      consistency_(consistency),
      workers_(workers),
      coordinator_(coordinator),
      gathering_(settings, consistency, workers) {}

void Versions::take_push(Turn& turn, int worker, const Request& push) {
  if (!consistency_.collects()) return apply_at_once(turn, worker, push);
  const Gathered gathered{push, worker};
  const bool late = push.version < version_;
  if (late || gathering_.has(push.hand))
    drop(turn, gathered);
  else
    gathering_.add(gathered);
}

void Versions::apply_at_once(Turn& turn, int worker, const Request& push) {
  const Gathered gathered{push, worker};
  const auto staleness = static_cast<double>(version_ - push.version);
  const int64_t position = workers_[worker].position();
  // The batch was cut into this many parts, even if workers have been lost since.
  const double factor = rate_factor(settings_.config, push.hand.parts, staleness / push.hand.parts,
                                    workers_.fastest() - position);
  const double rate = timetable_.rate(push.hand.epoch, push.hand.step);
  ++turn.updates;
  if (settings_.config.rate == RateKind::kDynamic)
    turn.put(
        output::Revise{gathered.name(), position - 1, push.hand.parts, rate, workers_.oldest()});
  else
    turn.put(output::Update{{gathered.name()}, 1, factor * rate});
  ++version_;
  count_applied(turn, gathered, push.clock, staleness);
  advanced(turn);
}

std::vector<Hand> Versions::close_step(Turn& turn) {
  while (consistency_.collects()) {
    const size_t left = coordinator_ ? coordinator_->left_in_epoch() : 0;
    Gathering::Choice choice = gathering_.choose(version_, left);
    if (choice.kind == Gathering::Choice::kWait) break;
    if (choice.kind == Gathering::Choice::kEnd) {
      drop_of_the_lost(turn);
      break;
    }
    if (choice.kind == Gathering::Choice::kRepeat) return std::move(choice.missing);
    if (choice.kind == Gathering::Choice::kSkip) {
      gathering_.forget_decision(version_++);
      advanced(turn);
      continue;
    }
    if (!may_close(turn, choice.chosen)) break;
    close(turn, std::move(choice.chosen));
  }
  announce_end(turn);
  return {};
}

// The head needs all gradients; it may have taken over from one that had them.
bool Versions::may_close(const Turn& turn, const std::vector<Gathered>& chosen) const {
  const Input& input = turn.input;
  if (input.replayed) return input.entry.updated && turn.updates == 0;
  return std::none_of(chosen.begin(), chosen.end(), [&](const Gathered& gathered) {
    return std::find(input.absent.begin(), input.absent.end(), gathered.name()) !=
           input.absent.end();
  });
}

void Versions::close(Turn& turn, std::vector<Gathered> chosen) {
  std::sort(chosen.begin(), chosen.end(),
            [](const Gathered& a, const Gathered& b) { return a.push.hand < b.push.hand; });
  announce_choice(turn, chosen);
  output::Update update;
  double weight = 0;
  for (const Gathered& gathered : chosen) {
    update.gradients.push_back(gathered.name());
    const Hand& hand = gathered.push.hand;
    weight += timetable_.weight(hand.epoch, hand.step, gathered.push.samples);
    gathering_.forget(gathered.name());
  }
  // In lockstep the shares are a whole batch and already divided by its size.
  update.factor = consistency_.lockstep() || weight <= 0 ? 1 : 1 / weight;
  const Hand& last = chosen.back().push.hand;
  update.rate = timetable_.rate(last.epoch, last.step);
  ++turn.updates;
  turn.put(std::move(update));
  gathering_.forget_decision(version_++);
  for (const Gathered& gathered : chosen) count_applied(turn, gathered, version_, 0);
  for (const Gathered& late : gathering_.take_all()) drop(turn, late);
  turn.count("steps_closed");
  advanced(turn);
}

// The others have to wait for it only where there is something to choose.
void Versions::announce_choice(Turn& turn, const std::vector<Gathered>& chosen) {
  if (!coordinator_ || settings_.config.servers == 1 || consistency_.lockstep()) return;
  Request decision;
  decision.flags = Request::kDecision;
  decision.version = version_;
  decision.count = static_cast<int32_t>(chosen.size());
  std::vector<Decided> decided;
  decided.reserve(chosen.size());
  for (const Gathered& gathered : chosen) decided.push_back({gathered.push.hand, gathered.worker});
  announce(turn, decision, std::move(decided));
}

// A worker that was lost may have pushed to the other shards alone, which would wait for a step
// that never comes. Without losses they have nothing that the first shard does not get as well.
void Versions::announce_end(Turn& turn) {
  if (!coordinator_ || settings_.config.servers == 1 || consistency_.lockstep() ||
      !consistency_.collects())
    return;
  const bool all_there = workers_.present().size() == static_cast<size_t>(workers_.size());
  if (all_there || !workers_.active().empty() || !gathering_.all().empty()) return;
  const bool said = std::any_of(bulletins_.begin(), bulletins_.end(), [&](const Bulletin& earlier) {
    return earlier.request.flags == Request::kDecision && earlier.decided.empty() &&
           earlier.request.version == version_;
  });
  if (said) return;
  Request end;
  end.flags = Request::kDecision;
  end.version = version_;
  announce(turn, end);
}

void Versions::drop_of_the_lost(Turn& turn) {
  const std::vector<Gathered> all = gathering_.all();
  for (const Gathered& gathered : all) {
    if (workers_[gathered.worker].present) continue;
    gathering_.forget(gathered.name());
    drop(turn, gathered);
    turn.changed = true;
  }
}

void Versions::count_applied(Turn& turn, const Gathered& gathered, int64_t round,
                             double staleness) {
  turn.put(output::Discard{gathered.name()});
  samples_ += gathered.push.samples;
  turn.count("pushes_applied");
  turn.put(output::Applied{round, staleness, gathered.push.read_s});
  if (coordinator_) coordinator_->applied(gathered.worker, gathered.push);
}

void Versions::drop(Turn& turn, const Gathered& gathered) {
  turn.put(output::Discard{gathered.name()});
  turn.count("pushes_dropped");
  if (coordinator_) coordinator_->dropped(gathered.worker, gathered.push);
}

void Versions::forget(Turn& turn, const GradientName& name) {
  gathering_.forget(name);
  turn.put(output::Discard{name});
}

// The parameters have one version more.
void Versions::advanced(Turn& turn) {
  turn.changed = true;
  // After each update whose number `snapshot_every` divides: so all shards have the same ones.
  const int64_t every = settings_.config.snapshot_every;
  if (every > 0 && version_ % every == 0)
    turn.put(output::Snapshot{version_, samples_, coordinator_ ? coordinator_->step(version_) : 0,
                              coordinator_ ? coordinator_->save() : std::vector<int64_t>()});
  if (coordinator_ && coordinator_->updated(turn, version_, workers_.active())) {
    to_keep_ = coordinator_->evaluation();
    keep_at_ = version_;
    Request keep;
    keep.flags = Request::kKeep;
    keep.version = version_;
    keep.share.id = to_keep_;
    if (settings_.config.servers > 1) announce(turn, keep);
  }
  keep_if_due(turn);
}

void Versions::keep_if_due(Turn& turn) {
  if (to_keep_ <= kept_ || version_ < keep_at_) return;
  turn.put(output::Keep{});
  kept_ = to_keep_;
}

void Versions::announce(Turn& turn, const Request& request, std::vector<Decided> decided) {
  constexpr size_t kRemembered = 64;  // no shard is that many steps behind
  if (bulletins_.size() >= kRemembered) bulletins_.pop_front();
  bulletins_.push_back({turn.input.entry.index, request, std::move(decided)});
}

bool Versions::obey(Turn& turn, const Request& bulletin, std::span<const Decided> decided) {
  if (bulletin.flags & Request::kKeep) {
    if (bulletin.share.id <= to_keep_) return false;  // it was told before
    to_keep_ = bulletin.share.id;
    keep_at_ = consistency_.collects() ? bulletin.version : 0;
    keep_if_due(turn);
    return false;
  }
  if (bulletin.version < version_) return false;
  gathering_.decide(bulletin.version, decided);
  return true;
}

void Versions::resume(int64_t version, int64_t samples) {
  version_ = version;
  samples_ = samples;
}

void Versions::archive(Archive& archive) {
  archive(version_, samples_, kept_, to_keep_, keep_at_, bulletins_);
  gathering_.archive(archive);
}

}  // namespace tutti::parameter_server
