#include "strategies/parameter_server/coordinator.h"

#include <bit>
#include <cmath>

namespace tutti::parameter_server {

Coordinator::Coordinator(const StateSettings& settings, const Consistency& consistency,
                         const Timetable& timetable)
    : settings_(settings),
      consistency_(consistency),
      timetable_(timetable),
      dealer_(timetable, settings.workers, settings.config.pull_every,
              settings.task.partition != Partition::kGlobal),
      started_s_(settings.started_s),
      progress_(settings.task) {}

void Coordinator::applied(int worker, const Request& push) {
  if (!consistency_.lockstep()) dealer_.accept(worker, push.hand, push.steps);
  progress_.samples += push.samples;
  progress_.steps += static_cast<double>(push.steps) / push.hand.parts;
  progress_.epochs +=
      timetable_.epochs_covered(push.hand.epoch, push.hand.step, push.steps) / push.hand.parts;
}

void Coordinator::dropped(int worker, const Request& push) {
  if (!consistency_.lockstep()) dealer_.drop(worker, push.hand);
}

bool Coordinator::updated(Turn& turn, int64_t version, const std::vector<int>& present) {
  version_ = version;
  const bool lockstep = consistency_.lockstep();
  if (lockstep) finished_ = !dealer_.deal_round(present);
  // A step that does without late workers uses less than a global batch, so the hands of
  // `max_steps` batches would last for more steps. Gradients still being computed belong to closed
  // steps.
  const int64_t most = settings_.task.max_steps;
  if (!lockstep && consistency_.collects() && most > 0 && version >= most) finished_ = true;
  if (!progress_.is_due() || evaluator_.active()) return false;
  progress_.begin_evaluation(settings_.task);
  begin_evaluation(turn, lockstep, present.size());
  return evaluator_.active() && !lockstep;
}

// An update that is made of one batch counts as a step, even if the parts of late workers are
// missing.
int64_t Coordinator::step(int64_t version) const {
  const bool one_batch = consistency_.collects() && settings_.config.pull_every == 1;
  return one_batch ? version : progress_.whole_steps();
}

void Coordinator::begin_evaluation(Turn& turn, bool blocking, size_t workers) {
  EvaluationRow row = progress_.evaluation_row(0, {});
  row.step = step(version_);
  evaluator_.begin(settings_.validation, workers, blocking, row);
  measured_version_ = version_;
  finish_evaluation(turn);
}

bool Coordinator::evaluated(Turn& turn, int worker, const EvaluationShare& share) {
  if (!evaluator_.add(worker, share)) return false;
  finish_evaluation(turn);
  return true;
}

void Coordinator::finish_evaluation(Turn& turn) {
  const std::optional<EvaluationRow> row = evaluator_.finish(
      turn.input.now_s - started_s_, settings_.classification, settings_.arithmetic);
  if (!row) return;
  turn.put(output::Measured{*row});
  progress_.end_evaluation(settings_.task, settings_.classification, row->quality);
  if (progress_.ends_at_target(settings_.task)) finished_ = true;
}

void Coordinator::lose(int worker) {
  dealer_.lose(worker);
  evaluator_.lose(worker);
}

bool Coordinator::direct(Turn& turn, int worker, bool final, bool newcomer,
                         const std::vector<int>& present, Reply& reply) {
  if (!begun_ && resumed_ && consistency_.lockstep())
    updated(turn, version_, present);  // a measurement may have been due
  else if (!begun_ && consistency_.lockstep())
    finished_ = !dealer_.deal_round(present);
  begun_ = true;
  if (final && !evaluator_.active() && !final_measured_) {
    final_measured_ = true;
    if (measured_version_ != version_) begin_evaluation(turn, true, present.size());
  }
  if (evaluator_.active()) {
    if (const auto task = evaluator_.take(worker, final || evaluator_.blocking())) {
      reply.kind = Reply::kEvaluate;
      reply.task = *task;
      return true;
    }
    // The others may be measuring the final quality. Servers give them the final parameters once
    // nobody trains any more, so a worker that came back meanwhile must not wait for them.
    const bool ends_now = newcomer && finished_ && !final;
    if ((evaluator_.blocking() || final) && !ends_now) return false;
  }
  if (final)
    reply.kind = Reply::kDone;
  else if (finished_)
    reply.kind = Reply::kFinish;
  else if (!next_hand(worker, reply))
    return false;
  return true;
}

std::vector<int64_t> Coordinator::save() const {
  std::vector<int64_t> saved = {
      std::bit_cast<int64_t>(progress_.epochs), std::bit_cast<int64_t>(progress_.steps),
      std::bit_cast<int64_t>(progress_.next_evaluation), progress_.samples};
  const std::vector<int64_t> hands = dealer_.save();
  saved.insert(saved.end(), hands.begin(), hands.end());
  return saved;
}

bool Coordinator::restore(int64_t version, std::span<const int64_t> saved) {
  constexpr size_t kOwn = 4;
  if (saved.size() < kOwn || !dealer_.restore(saved.subspan(kOwn))) return false;
  progress_.epochs = std::bit_cast<double>(saved[0]);
  progress_.steps = std::bit_cast<double>(saved[1]);
  progress_.next_evaluation = std::bit_cast<double>(saved[2]);
  progress_.samples = saved[3];
  version_ = version;
  resumed_ = true;
  return true;
}

void Coordinator::archive(Archive& archive) {
  dealer_.archive(archive);
  evaluator_.archive(archive);
  archive(started_s_, progress_, version_, measured_version_, begun_, resumed_, finished_,
          final_measured_);
}

bool Coordinator::next_hand(int worker, Reply& reply) {
  std::optional<Hand> hand;
  if (consistency_.lockstep()) {
    hand = dealer_.of_round(worker);
    if (!hand) return false;  // it came late to this step and takes part in the next
  } else {
    hand = dealer_.draw(worker, consistency_.collects());
  }
  reply.kind = hand ? Reply::kCompute : Reply::kFinish;
  if (!hand) return true;
  reply.hand = *hand;
  reply.rate = timetable_.rate(hand->epoch, hand->step);
  return true;
}

}  // namespace tutti::parameter_server
