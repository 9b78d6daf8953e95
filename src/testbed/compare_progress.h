// Progress of a comparison: one bar per running strategy on a terminal, plain lines otherwise.
#pragma once

#include <string>
#include <vector>

#include "jobs/progress.h"
#include "testbed/run_pool.h"

namespace tutti {

class CompareProgress {
 public:
  CompareProgress(ProgressStyle style, size_t total_runs, std::string metric, size_t columns);
  ~CompareProgress() { clear(); }
  CompareProgress(const CompareProgress&) = delete;
  CompareProgress& operator=(const CompareProgress&) = delete;

  void kept(size_t runs);  // found finished
  void ended(const std::string& name, const std::string& how);
  void say(const std::string& line);                     // above the bars
  void update(const std::vector<RunProgress>& running);  // called often; prints now and then

 private:
  std::string bar(const RunProgress& run) const;
  void clear();

  ProgressStyle style_;
  size_t total_runs_, ended_ = 0;
  std::string metric_;
  size_t columns_;
  double started_s_, printed_s_;
  size_t bars_ = 0;  // lines on the terminal that will be written over
};

}  // namespace tutti
