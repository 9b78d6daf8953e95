#include "strategies/shared_evaluation.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace tutti {
namespace {

void split(const ExactSum& sum, uint64_t (&halves)[2]) {
  std::memcpy(halves, &sum.value, sizeof(halves));
}

int128_t joined(const uint64_t (&halves)[2]) {
  int128_t value = 0;
  std::memcpy(&value, halves, sizeof(halves));
  return value;
}

}  // namespace

EvaluationShare share_of(const EvaluationTask& task, const EvaluationSums& sums) {
  EvaluationShare share{.id = task.id, .begin = task.begin, .end = task.end};
  split(sums.loss, share.loss);
  split(sums.correct, share.correct);
  split(sums.invalid, share.invalid);
  return share;
}

void Evaluator::begin(size_t samples, size_t workers, bool blocking, const EvaluationRow& row) {
  active_ = true;
  blocking_ = blocking;
  row_ = row;
  samples_ = samples;
  sums_ = {};
  ++id_;
  open_.clear();
  taken_.clear();
  served_.clear();
  unserved_ = workers;
  const size_t chunks = evaluation_chunks(samples);
  workers = std::max<size_t>(1, workers);  // all may be about to end, and still there to ask
  for (size_t i = 0; i < workers; ++i) {
    const Range part = part_of(chunks, workers, i);
    if (part.empty()) continue;
    open_.push_back({.id = id_,
                     .begin = static_cast<uint32_t>(part.begin),
                     .end = static_cast<uint32_t>(part.end),
                     .on_snapshot = blocking ? 0u : 1u});
  }
  std::reverse(open_.begin(), open_.end());  // the first range first
}

std::optional<EvaluationTask> Evaluator::take(int worker, bool again) {
  const bool had = std::find(served_.begin(), served_.end(), worker) != served_.end();
  if (open_.empty() || (had && !again && open_.size() <= unserved_)) return std::nullopt;
  if (!had) {
    served_.push_back(worker);
    if (unserved_ > 0) --unserved_;
  }
  const EvaluationTask task = open_.back();
  open_.pop_back();
  taken_.push_back({worker, 0, task});
  return task;
}

bool Evaluator::add(int worker, const EvaluationShare& share) {
  const auto found = std::find_if(taken_.begin(), taken_.end(), [&](const Taken& taken) {
    return taken.worker == worker && taken.task.id == share.id && taken.task.begin == share.begin &&
           taken.task.end == share.end;
  });
  if (found == taken_.end()) return false;
  taken_.erase(found);
  sums_.loss.value += joined(share.loss);
  sums_.correct.value += joined(share.correct);
  sums_.invalid.value += joined(share.invalid);
  return true;
}

void Evaluator::lose(int worker) {
  const bool had = std::find(served_.begin(), served_.end(), worker) != served_.end();
  if (!had && unserved_ > 0) --unserved_;
  for (const Taken& taken : taken_)
    if (taken.worker == worker) open_.push_back(taken.task);
  std::erase_if(taken_, [&](const Taken& taken) { return taken.worker == worker; });
}

std::optional<EvaluationSums> Evaluator::complete() {
  if (!active_ || !open_.empty() || !taken_.empty()) return std::nullopt;
  active_ = blocking_ = false;
  return sums_;
}

std::optional<EvaluationRow> Evaluator::finish(double time_s, bool classification,
                                               Arithmetic arithmetic) {
  const std::optional<EvaluationSums> sums = complete();
  if (!sums) return std::nullopt;
  const Quality quality = quality_of(*sums, samples_, classification, arithmetic);
  row_.time_s = time_s;
  row_.loss = quality.loss;
  row_.quality = quality.quality;
  return row_;
}

}  // namespace tutti
