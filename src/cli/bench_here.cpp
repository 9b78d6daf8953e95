// `tutti bench here`: is what is said of this machine true? For each reference task the times per
// step of solo, direct and ring are predicted as `tutti advise --cluster here` predicts them, and
// then the task is trained by each, for real, with 1 and 2 processes.
#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cmath>

#include "cli/bench.h"
#include "cli/here_study.h"
#include "core/described_json.h"
#include "core/error.h"
#include "core/isolated_run.h"
#include "jobs/run_folder.h"
#include "jobs/tasks.h"
#include "jobs/versions.h"
#include "testbed/model_cost.h"
#include "testbed/run_files.h"
#include "testbed/step_simulation.h"
#include "testbed/this_machine.h"
#include "testbed/variants.h"

namespace tutti {
namespace {

using nlohmann::json;

const std::vector<std::string> kHereStrategies = {"solo", "direct", "ring"};
constexpr int64_t kHereProcesses = 2;
constexpr double kHereRun_s = 1;  // of training in each run, about
constexpr int64_t kFewestSteps = 40, kMostHereSteps = 40000;
constexpr size_t kParts = 20;  // of a run's steps

// Before everything else on this machine: the load of others is none of this one's figures. Without
// the right to it they are merely worse.
void run_before_others() {
  const sched_param priority{.sched_priority = 10};
  sched_setscheduler(0, SCHED_RR, &priority);
}

// Returns the time of a step in most parts of the run. The first are warming up, and the system
// takes a processor of this priority away for a moment of each second, which the median does not
// see.
double typical_step_s(const std::string& folder) {
  const std::vector<double> times = read_run(folder).series.time_s;
  const size_t steps = times.size() / kParts;
  if (steps == 0) throw Error("here: a run was too short to be measured");
  std::vector<double> means;
  for (size_t part = 2; part < kParts; ++part)
    means.push_back((times[(part + 1) * steps - 1] - times[part * steps - 1]) /
                    static_cast<double>(steps));
  return median(means);
}

// A reference task on this machine: how long each strategy should take, and does.
class TaskHere {
 public:
  TaskHere(Job job, const ClusterConfig& here) : base_(std::move(job)) {
    base_.cluster = here;
    base_.task.deterministic = false;
    base_.task.target = 0;
    base_.task.eval_every = 1e9;  // at the end alone
    base_.task.epochs = 1000000;  // the steps decide
    Job alone = with_settings(base_, {"strategy={ kind = \"solo\" }"});
    alone.strategy->fit(alone.cluster);
    data_ = resolve(alone);
    for (const std::string& name : kHereStrategies) cases_.push_back({name, {}, {}});
  }

  // As advice does it: the model's cost is measured, messages are simulated.
  void predict(const std::atomic<bool>& stop) {
    Job base = with_settings(base_, {});
    use_model_cost(base.cluster, measure_model_cost(base, data_));
    for (HereCase& c : cases_) {
      const Job job = compared_jobs(base, {c.strategy}).front().job;
      const std::string reply = run_isolated(
          "here",
          [&](const std::atomic<bool>& raised) {
            return fmt::format("{}", simulate_steps(job, data_.data, raised).step_s);
          },
          stop);
      c.predicted_s.push_back(std::stod(reply));
    }
  }

  void measure(const std::atomic<bool>& stop) {
    for (HereCase& c : cases_) {
      Job job = with_settings(compared_jobs(base_, {c.strategy}).front().open, {});
      const int64_t workers = job.cluster.workers;
      job.cluster = ClusterConfig{};
      job.cluster.workers = std::min(workers, kHereProcesses);
      job.task.max_steps = steps_of(c);
      const TemporaryFolder folder;
      write_file(folder / "job.toml", resolved_toml(job));
      record_in(output_of({program_folder() + "/tutti", "train", folder / "job.toml", "--json",
                           "--quiet", "--out", folder / "run"},
                          stop));
      c.measured_s.push_back(typical_step_s(folder / "run"));
    }
  }

  int64_t steps_of_first() const { return steps_of(cases_.front()); }
  const std::vector<HereCase>& cases() const { return cases_; }

 private:
  static int64_t steps_of(const HereCase& c) {
    const double steps = kHereRun_s / c.predicted_s.front();
    return std::clamp(static_cast<int64_t>(steps), kFewestSteps, kMostHereSteps);
  }

  Job base_;
  Resolved data_;
  std::vector<HereCase> cases_;
};

}  // namespace

json bench_here(const BenchOptions& options, const std::atomic<bool>& stop) {
  run_before_others();
  const MachineFigures machine = measure_this_machine(
      kHereProcesses, [&](const std::string& text) { say(options, text); }, stop);
  if (!options.json) fmt::print("{}", cluster_file_text(machine));
  HereStudy study;
  for (const ReferenceTask& task : reference_tasks()) {
    const std::string name(task.name);
    if (!wanted(options, name)) continue;
    Job job = load_job(recipe_of(task), {});
    if (!missing_files(job).empty()) {
      study.leave_out(name, fmt::format("its data is not here; {} gets it", task.remedy));
      continue;
    }
    TaskHere here(std::move(job), machine.cluster);
    for (int round = 0; round < options.rounds; ++round) {
      say(options, fmt::format("here: {}, round {} of {}", name, round + 1, options.rounds));
      leave_if_stopped(stop);
      here.predict(stop);
      here.measure(stop);
    }
    study.add(name, here.steps_of_first(), here.cases());
  }
  json result = study.summary(options.json);
  result["rounds"] = options.rounds;
  result["machine"] = json_of(machine_description());
  result["versions"] = json_of(library_versions());
  result["cluster"] = cluster_file_text(machine);
  return result;
}

}  // namespace tutti
