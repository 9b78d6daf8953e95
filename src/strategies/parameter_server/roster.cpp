#include "strategies/parameter_server/roster.h"

#include <algorithm>

namespace tutti::parameter_server {

void WorkerRecord::archive(Archive& archive) {
  archive(present, finished, done, waited, incarnation, executed, base, clock, forgiven,
          forgiven_at, pull, reply);
}

std::vector<int> Roster::present() const {
  std::vector<int> members;
  for (int i = 0; i < size(); ++i)
    if ((*this)[i].present) members.push_back(i);
  return members;
}

std::vector<int> Roster::active() const {
  std::vector<int> members;
  for (int i = 0; i < size(); ++i)
    if ((*this)[i].present && !(*this)[i].finished) members.push_back(i);
  return members;
}

int64_t Roster::oldest() const {
  int64_t least = kMostBound;
  for (const WorkerRecord& worker : workers_)
    if (worker.present && !worker.finished) least = std::min(least, worker.position());
  return least;
}

int64_t Roster::fastest() const {
  int64_t most = 0;
  for (const WorkerRecord& worker : workers_)
    if (worker.present) most = std::max(most, worker.position());
  return most;
}

bool Roster::everybody_waits() const {
  return std::all_of(workers_.begin(), workers_.end(), [&](const WorkerRecord& worker) {
    return !worker.present || worker.finished || worker.pull;
  });
}

void Roster::archive(Archive& archive) {
  for (WorkerRecord& worker : workers_) worker.archive(archive);
}

}  // namespace tutti::parameter_server
