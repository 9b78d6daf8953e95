// `compare --tune`: every architecture finds its own best value of one setting, by as many trial
// runs as every other, before it is compared with it. A grid: a search that learns from its trials
// can take this over.
//
// A trial is a run of the whole task with a seed that does not count afterwards. The best trial is
// the one that the comparison would put first: with the least time to the target, and where none
// reached it with the best quality at the end, on validation samples.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "testbed/comparison.h"
#include "testbed/comparison_plan.h"
#include "testbed/run_files.h"
#include "testbed/variants.h"

namespace tutti {

// What --tune and --budget ask for.
struct Tuning {
  std::string key;             // "optimizer.lr"
  std::string range;           // "log:0.003:0.3", "lin:1:4" or "0.01,0.03,0.1"
  std::vector<double> values;  // one for each trial, from the least to the greatest

  std::string text() const { return key + "=" + range; }
};

inline constexpr uint64_t kTrialSeed = 1'000'001;
inline constexpr int64_t kTrials = 6;  // where nobody says how many

// Reads "KEY=RANGE". Throws ConfigError that says what to write instead.
Tuning parse_tuning(const std::string& text, std::optional<int64_t> budget);

// Throws ConfigError when a strategy does not have the setting, or the seed of the trials counts.
void validate(const Tuning& tuning, const std::vector<ComparedJob>& compared,
              const std::vector<uint64_t>& seeds);

// Runs what is planned, one result for each run.
using RunPlanned = std::function<std::vector<RunFiles>(const std::vector<PlannedRun>& plan)>;

// Tries every value with each strategy that can run here, and gives each its own best one. Returns
// what was found, by the index of the strategy; nothing for those that cannot run.
std::vector<std::optional<ComparedTuning>> tune(std::vector<ComparedJob>& compared,
                                                const Tuning& tuning, bool share_curves,
                                                const RunPlanned& run);

// What the table says of it: a cell ("0.0189", "0.3 edge"), and the notes below, also on settings
// by which nothing was learnt.
std::string tuning_cell(const ComparedStrategy& row);
std::vector<std::string> notes_on_settings(const Comparison& comparison);
// The [[compare]] entries that give every strategy what was found for it; `command` found it.
std::string tuned_entries(const Comparison& comparison, const std::string& command);

}  // namespace tutti
