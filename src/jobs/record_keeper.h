// A node's part in keeping the record of a run: one node writes it, and when that one is lost, the
// next goes on.
#pragma once

#include <optional>

#include "jobs/diary.h"

namespace tutti {

class RecordKeeper {
 public:
  // `rows` are those of this node. All of these have to outlive it.
  RecordKeeper(const Stage& stage, Node& node, const Log& log, const Recorder& rows);

  // This node has taken a step, or knows of a measurement.
  void note(const StepRow& row);
  void note(const EvaluationRow& row);
  // Takes over from a node that is lost. Called with each row, and once more when all is done.
  void continue_if_due();
  void end();

  // It has kept the record last, as far as it knows.
  bool keeps() const { return keeps_; }

 private:
  bool is_next() const;
  bool is_worker() const { return me_ < stage_.resolved.plan.workers; }
  void begin(bool continues);
  StepRow timed(StepRow row) const;

  const Stage& stage_;
  Node& node_;
  const Log& log_;
  const Recorder& rows_;
  const Rank me_;
  const double began_s_;
  bool keeps_ = false;
  std::optional<Diary> diary_;
};

}  // namespace tutti
