// What tests of comparisons have in common: a folder of runs made by hand, and their summary.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/described_json.h"
#include "core/error.h"
#include "testbed/summary.h"
#include "tests/testbed/runs.h"

namespace tutti {

using namespace testing_support;
using nlohmann::json;

class SummaryTest : public testing::Test {
 protected:
  std::string add(const std::string& name, const MadeRun& made) {
    folders_.push_back(make_run(folder_ / name, made));
    return folders_.back();
  }
  // The comparison of all runs so far, as compare.json has it.
  json written() { return json_of(summarise_runs(folders_)); }
  json row(const json& comparison, const std::string& name) {
    for (const json& candidate : comparison["strategies"])
      if (candidate["name"] == name) return candidate;
    ADD_FAILURE() << "no strategy " << name;
    return json::object();
  }
  std::string refusal() {
    try {
      summarise_runs(folders_);
    } catch (const DataError& error) {
      return error.what();
    }
    return "accepted";
  }
  TemporaryFolder folder_;
  std::vector<std::string> folders_;
};

inline const Settings kRing = {"strategy.topology=ring", "cluster.workers=2"};
inline const Settings kTree = {"strategy.topology=tree", "cluster.workers=2"};
inline const Settings kSolo = {"strategy.kind=solo", "cluster.workers=1"};

}  // namespace tutti
