// Which settings differ between two jobs, besides those of the strategy.
#pragma once

#include <string>
#include <vector>

#include "jobs/job.h"

namespace tutti {

struct SettingChange {
  std::string key;   // "optimizer.lr"
  std::string text;  // "0.1 -> 0.01"
  bool learning;     // what is learned depends on it
};

// In the order of a job file. A setting that only one of them has, because it belongs to a kind, is
// not named: the kind is.
std::vector<SettingChange> changed_settings(const Job& before, const Job& after);

// "optimizer.lr 0.1 -> 0.01; cluster.workers 4 -> 8", cut after some.
std::string in_words(const std::vector<SettingChange>& changes);

}  // namespace tutti
