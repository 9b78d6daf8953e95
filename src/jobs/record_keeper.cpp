#include "jobs/record_keeper.h"

#include <iterator>
#include <optional>
#include <utility>

namespace tutti {

RecordKeeper::RecordKeeper(const Stage& stage, Node& node, const Log& log, const Recorder& rows)
    : stage_(stage),
      node_(node),
      log_(log),
      rows_(rows),
      me_(node.endpoint().rank()),
      began_s_(node.clock().now()) {
  if (me_ == stage.resolved.plan.recorder && node.membership().incarnation(me_) == 0) begin(false);
}

// A node from elsewhere has no book. It says in its report what it has seen.
void RecordKeeper::begin(bool continues) {
  keeps_ = !stage_.book;
  if (!stage_.book) return;
  std::optional<Keeping> keeping = stage_.book->try_keep();
  if (!keeping) return;
  keeps_ = true;
  diary_.emplace(stage_, std::move(*keeping), continues);
}

// Of workers it is one that has been there from the beginning, the first of those that are left.
bool RecordKeeper::is_next() const {
  const Plan& plan = stage_.resolved.plan;
  if (plan.recorder >= plan.workers || !is_worker()) return me_ == plan.recorder;
  const Membership& members = node_.membership();
  const uint32_t own = members.incarnation(me_);
  for (Rank rank = 0; rank < (own == 0 ? me_ : plan.workers); ++rank) {
    if (rank == me_ || !members.alive(rank)) continue;
    const uint32_t theirs = members.incarnation(rank);
    if (theirs < own || (theirs == own && rank < me_)) return false;
  }
  return true;
}

void RecordKeeper::continue_if_due() {
  if (keeps_ || !is_next()) return;
  begin(true);
  if (!keeps_) return;
  log_.warn("keeps the record of the run from now on");
  if (!diary_) return;
  for (const StepRow& row : rows_.steps()) diary_->catch_up(timed(row));
}

// One that came back began to count its time then.
StepRow RecordKeeper::timed(StepRow row) const {
  if (node_.membership().incarnation(me_) > 0) row.time_s += began_s_;
  return row;
}

void RecordKeeper::note(const StepRow& row) {
  const bool kept_before = keeps_;
  continue_if_due();
  if (!diary_) return;
  if (kept_before) diary_->step(timed(row));
  const Plan& plan = stage_.resolved.plan;
  if (plan.workers < std::ssize(plan.nodes)) diary_->look();  // servers measure, too
}

// All that have measured together have the same row.
void RecordKeeper::note(const EvaluationRow& row) {
  continue_if_due();
  if (stage_.book && (diary_ || !is_worker())) stage_.book->add(me_, row);
  if (diary_) diary_->look();
}

void RecordKeeper::end() {
  if (diary_) diary_->end();
}

}  // namespace tutti
