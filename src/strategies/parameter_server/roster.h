// What a shard knows of each worker: whether it is there, how far it has come, what it waits for.
#pragma once

#include <optional>
#include <vector>

#include "core/archive.h"
#include "strategies/parameter_server/messages.h"

namespace tutti::parameter_server {

struct WorkerRecord {
  bool present = true;
  bool finished = false;  // pushes nothing more
  bool done = false;      // has the final parameters, or knows that there are none
  bool waited = false;    // its pull was refused for now
  uint32_t incarnation = 0;
  uint64_t executed = 0;    // sequence number of its last request that was executed
  int64_t base = 0;         // the slowest worker's clock when it joined
  int64_t clock = 0;        // its pushes that were applied or dropped
  int64_t forgiven = 0;     // clocks that it need not catch up with
  int64_t forgiven_at = 0;  // its clock when it was told so last
  std::optional<Request> pull;
  Reply reply;  // the last one

  // Its clock, as it is compared with others', minus its pushes.
  int64_t lead() const { return base + forgiven; }
  int64_t position() const { return lead() + clock; }
  void archive(Archive& archive);
};

class Roster {
 public:
  explicit Roster(int workers) : workers_(static_cast<size_t>(workers)) {}

  int size() const { return static_cast<int>(workers_.size()); }
  WorkerRecord& operator[](int index) { return workers_[static_cast<size_t>(index)]; }
  const WorkerRecord& operator[](int index) const { return workers_[static_cast<size_t>(index)]; }
  auto begin() const { return workers_.begin(); }
  auto end() const { return workers_.end(); }

  std::vector<int> present() const;
  std::vector<int> active() const;  // and those that push no more left out
  int64_t oldest() const;           // the slowest active worker; kMostBound: there is none
  int64_t fastest() const;
  bool everybody_waits() const;  // or pushes nothing more
  void archive(Archive& archive);

 private:
  std::vector<WorkerRecord> workers_;
};

}  // namespace tutti::parameter_server
