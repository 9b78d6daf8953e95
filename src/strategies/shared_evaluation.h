// An evaluation that workers share without waiting for each other: who asks gets a range of the
// validation samples, once, or a slow one would end up with those of all who wait for it; what a
// lost worker had taken goes to somebody else.
#pragma once

#include <optional>
#include <vector>

#include "core/archive.h"
#include "strategies/evaluation.h"
#include "strategies/evaluation_share.h"
#include "strategies/recorder.h"

namespace tutti {

class Evaluator {
 public:
  // Cuts `samples` validation samples for `workers` workers. `row` has what is known already.
  void begin(size_t samples, size_t workers, bool blocking, const EvaluationRow& row);
  bool active() const { return active_; }
  bool blocking() const { return blocking_; }  // nobody goes on before it is complete
  int64_t id() const { return id_; }
  // `again`: also to a worker that had one.
  std::optional<EvaluationTask> take(int worker, bool again);
  // False when nobody asked for this share: the sender is confused or hostile.
  bool add(int worker, const EvaluationShare& share);
  void lose(int worker);
  // The sums, once, when every share is there.
  std::optional<EvaluationSums> complete();
  // The same as a row of the record, finished at this time. Throws DivergedError when a loss was
  // not a number. Where no arithmetic is done it took time, but measured nothing.
  std::optional<EvaluationRow> finish(double time_s, bool classification, Arithmetic arithmetic);
  void archive(Archive& archive) {
    archive(id_, active_, blocking_, open_, unserved_, served_, taken_, sums_, samples_, row_);
  }

 private:
  struct Taken {
    int32_t worker;
    int32_t unused;  // instead of padding: equal ones are equal bytes
    EvaluationTask task;
  };
  int64_t id_ = 0;
  bool active_ = false, blocking_ = false;
  std::vector<EvaluationTask> open_;
  size_t unserved_ = 0;      // workers that have not had a share
  std::vector<int> served_;  // and those that have
  std::vector<Taken> taken_;
  EvaluationSums sums_;
  uint64_t samples_ = 0;
  EvaluationRow row_;
};

EvaluationShare share_of(const EvaluationTask& task, const EvaluationSums& sums);

}  // namespace tutti
