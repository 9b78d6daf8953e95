#include "testbed/verify.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "core/error.h"
#include "core/printable.h"
#include "core/temporary_folder.h"
#include "core/units.h"
#include "jobs/run_folder.h"
#include "jobs/run_status.h"
#include "testbed/compare.h"
#include "testbed/foreign_job.h"

namespace tutti {
namespace {

using nlohmann::json;

constexpr const char* kJobOfBundle = "job.toml";

const ComparedStrategy& row_named(const Comparison& comparison, const std::string& name) {
  std::vector<std::string_view> known;
  for (const ComparedStrategy& row : comparison.strategies) {
    if (row.name == name) return row;
    known.push_back(row.name);
  }
  const std::string near = nearest(name, known);
  throw ConfigError("--part",
                    fmt::format("--part: the bundle has no strategy '{}'{}; it has {}", name,
                                near.empty() ? "" : ", did you mean '" + near + "'?",
                                printable(fmt::format("{}", fmt::join(known, ", ")))));
}

// Those that were asked for, each with the one whose learning curve it shares: together they are
// run as they were for the bundle.
std::vector<std::string> strategies_to_run(const Comparison& there,
                                           const std::vector<std::string>& part) {
  std::vector<std::string> names;
  const auto add = [&](const std::string& name) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  };
  for (const ComparedStrategy& row : there.strategies) {
    if (!part.empty() && std::find(part.begin(), part.end(), row.name) == part.end()) continue;
    if (row.shared_curve_of) add(row_named(there, *row.shared_curve_of).name);
    add(row.name);
  }
  for (const std::string& name : part) row_named(there, name);  // is refused if there is none
  return names;
}

std::vector<uint64_t> seeds_to_run(const Comparison& there, const VerifyOptions& options) {
  const std::vector<uint64_t>& all = there.strategies.front().seeds;
  const std::string list = fmt::format("{}", fmt::join(all, ", "));
  if (options.first_seeds > all.size())
    throw ConfigError("--seeds", fmt::format("--seeds {}: the bundle has {} of them: {}",
                                             options.first_seeds, all.size(), list));
  if (options.first_seeds > 0)
    return {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(options.first_seeds)};
  for (const uint64_t seed : options.seeds)
    if (std::find(all.begin(), all.end(), seed) == all.end())
      throw ConfigError("--seeds",
                        fmt::format("--seeds: the bundle has no seed {}; it has {}", seed, list));
  return options.seeds.empty() ? all : options.seeds;
}

// The job of the bundle, with the data where it is on this machine.
Job foreign_job_of(const Bundle& bundle, const VerifyOptions& options) {
  Job job = parse_job(bundle.comparison.job, fmt::format("{}: {}", options.file, kJobOfBundle));
  const auto settle = [&](Job& each) {
    require_harmless(each, options.file);
    if (!options.data_dir.empty())
      move_to(each.task.data, std::filesystem::absolute(options.data_dir).string());
  };
  settle(job);
  for (Job& entry : job.compare) settle(entry);
  return job;
}

void require_data(const Job& job, const Bundle& bundle, const std::vector<std::string>& strategies,
                  const std::string& file) {
  std::vector<std::string> read;  // settings of data, and what it must be
  for (const std::string& name : strategies) {
    const auto entry = std::find_if(job.compare.begin(), job.compare.end(),
                                    [&](const Job& each) { return each.name == name; });
    const Job& own = entry == job.compare.end() ? job : *entry;
    const TaskIdentity expected = row_named(bundle.comparison, name).task.value_or(TaskIdentity{});
    Job data_only;
    data_only.task.data = own.task.data;
    const std::string key = resolved_toml(data_only) + expected.data + expected.split;
    if (std::find(read.begin(), read.end(), key) != read.end()) continue;
    require_expected_data(own, expected, file);
    read.push_back(key);
  }
}

void announce_runs(const Comparison& there, const std::vector<std::string>& strategies,
                   const std::vector<uint64_t>& seeds, const VerifyOptions& options) {
  if (options.progress == ProgressStyle::kNone) return;
  double wall_s = 0;
  for (const std::string& name : strategies) {
    const OverSeeds& wall = row_named(there, name).wall_s;
    if (wall && wall->mean) wall_s += *wall->mean * static_cast<double>(seeds.size());
  }
  tell(
      fmt::format("running {} of {} strategies with {} of {} seeds again; they took {} of "
                  "a machine there\n",
                  strategies.size(), there.strategies.size(), seeds.size(),
                  there.strategies.front().seeds.size(), human_quantity(wall_s, Unit::kSeconds)));
}

// A job without what may differ between machines and between runs that compute their own learning
// curve and runs that share one.
std::string comparable(const std::string& text, const std::string& file) {
  Job job = parse_job(text, file);
  move_to(job.task.data, "");
  job.cluster.cost_only = false;
  job.task.max_steps = 0;
  return resolved_toml(job);
}

// The first line in which two texts differ, of the first.
std::string first_difference(const std::string& one, const std::string& other) {
  const auto at = std::mismatch(one.begin(), one.end(), other.begin(), other.end()).first;
  const auto index = static_cast<size_t>(at - one.begin());
  const size_t begin = index == 0 ? 0 : one.rfind('\n', index - 1) + 1;
  return one.substr(begin, one.find('\n', index) - begin);
}

// What this program plans for the jobs of the bundle, beside what the bundle says.
class PlanCheck {
 public:
  PlanCheck(const Bundle& bundle, const Job& job, const std::vector<std::string>& strategies,
            std::string folder)
      : bundle_(bundle), plans_(plans_of(job, strategies)), folder_(std::move(folder)) {}

  void operator()(CheckedClaim& checked, const std::vector<uint64_t>& seeds) const {
    const std::string& name = checked.claim.strategy;
    const auto here = plans_.find(name);
    if (here == plans_.end()) return;
    checked.verdict = Verdict::kNotConfirmed;
    const json& there = bundle_.plans.at(name);
    if (here->second != there) {
      checked.finding = fmt::format("the plan differs at {}",
                                    json::diff(there, here->second)[0].value("path", ""));
      return;
    }
    for (const uint64_t seed : seeds) {
      const std::string run = run_name(name, seed);
      const std::string file = fmt::format("{}/jobs/{}.toml", folder_, run);
      if (!std::filesystem::exists(file)) continue;  // there was no time for it
      const std::string was = comparable(bundle_.jobs.at(run), "jobs/" + run);
      const std::string is = comparable(read_file(file), file);
      if (was == is) continue;
      checked.finding = fmt::format("jobs/{}.toml differs: \"{}\" there, \"{}\" here", run,
                                    first_difference(was, is), first_difference(is, was));
      return;
    }
    checked.verdict = Verdict::kConfirmed;
    checked.finding = "equal";
    checked.difference = 0;
  }

 private:
  const Bundle& bundle_;
  std::map<std::string, json> plans_;
  std::string folder_;
};

// A kind of strategy may have the name of a variant: then others of the kind were run as well.
bool is_in(const Comparison& comparison, const std::string& name) {
  return std::any_of(comparison.strategies.begin(), comparison.strategies.end(),
                     [&](const ComparedStrategy& row) { return row.name == name; });
}

// What a bundle says of its task and its cluster is what its job makes of them.
void require_same_head(const Comparison& there, const Comparison& here, const std::string& file) {
  const auto contradiction = [&](const std::string& what) {
    throw DataError(
        fmt::format("{}: it contradicts itself: {}; get the file again from who made it", file,
                    printable(what)));
  };
  for (const ComparedStrategy& row : here.strategies) {
    if (!is_in(there, row.name)) continue;
    const std::optional<TaskIdentity>& task = row_named(there, row.name).task;
    if (!row.task || !task) continue;
    if (const std::string text = task_difference(*row.task, *task); !text.empty())
      contradiction(fmt::format("{} is of another task than its job: {}", row.name, text));
  }
  const bool same_words =
      there.versions && here.versions && there.versions->tutti == here.versions->tutti;
  if (same_words && there.title != here.title)
    contradiction(
        fmt::format("its title is \"{}\", that of its job \"{}\"", there.title, here.title));
}

void note_failures(Verification& result, const Comparison& there, const Comparison& here) {
  for (const Refusal& refusal : here.not_possible)
    if (is_in(there, refusal.name))
      result.failed.push_back(fmt::format("{}: {}", refusal.name, refusal.reason));
  for (const ComparedStrategy& row : here.strategies)
    for (size_t i = 0; i < row.statuses.size(); ++i)
      if (value_of(row.statuses[i], RunStatus::kDone) == RunStatus::kFailed)
        result.failed.push_back(fmt::format("{}: {}", run_name(row.name, row.seeds[i]), row.error));
}

void judge_all(Verification& result) {
  for (const CheckedClaim& checked : result.claims) {
    if (checked.verdict == Verdict::kConfirmed) ++result.confirmed;
    if (checked.verdict == Verdict::kNotConfirmed) ++result.not_confirmed;
    if (checked.verdict == Verdict::kNotChecked) ++result.not_checked;
  }
  if (result.not_confirmed > 0)
    result.verdict = Verdict::kNotConfirmed;
  else if (result.confirmed > 0 && result.failed.empty())
    result.verdict = Verdict::kConfirmed;
}

}  // namespace

Verification verify(const VerifyOptions& options, const std::atomic<bool>& stop) {
  const Bundle bundle = read_bundle(options.file);
  const Comparison& there = bundle.comparison;
  Verification result;
  result.bundle = options.file;
  result.name = there.name;
  result.strategies = strategies_to_run(there, options.part);
  result.seeds = seeds_to_run(there, options);
  Job job = foreign_job_of(bundle, options);
  require_data(job, bundle, result.strategies, options.file);
  announce_runs(there, result.strategies, result.seeds, options);
  std::optional<TemporaryFolder> temporary;
  if (options.out.empty()) temporary.emplace();
  CompareOptions again;
  again.strategies = result.strategies;
  again.seeds = result.seeds;
  again.out = temporary ? temporary->path() : options.out;
  again.jobs = options.jobs;
  again.share_curves = bundle.manifest.share_curves;
  again.most_s = options.most_s;
  again.progress = options.progress;
  again.announces = false;
  again.columns = options.columns;
  std::string folder;
  const Comparison here = compare(job, again, stop, folder);

  require_same_head(there, here, options.file);
  result.same_arithmetic = same_arithmetic(there, here);
  result.versions_there = there.versions;
  result.versions_here = here.versions;
  result.machine_there = there.machine;
  result.machine_here = here.machine;
  const ClaimContext context{there, here, result.same_arithmetic};
  const PlanCheck check_plan(bundle, job, result.strategies, folder);
  for (const Claim& claim : bundle.claims.claims) {
    result.claims.push_back(check_claim(claim, context));
    CheckedClaim& checked = result.claims.back();
    const bool was_run = checked.finding.empty();
    if (claim.kind == ClaimKind::kPlan && was_run) check_plan(checked, result.seeds);
  }
  note_failures(result, there, here);
  judge_all(result);
  return result;
}

}  // namespace tutti
