#include "testbed/advice_works.h"

#include <cmath>
#include <cstring>
#include <functional>

#include "core/error.h"
#include "testbed/time_to_target.h"

namespace tutti {
namespace {

constexpr double kLessEffort = 8;  // where a rough time will do
// To compute gradients for all of a run would be to learn: as few intervals as tell something stand
// for the others.
constexpr double kLeastEffort = 1;

double rough_effort(bool gradients) { return gradients ? kLeastEffort : kMostEffort / kLessEffort; }
constexpr char kDone = '=', kFailed = '!';

std::string packed_times(const std::vector<double>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(double)};
}

std::vector<double> unpacked_times(const std::string& bytes) {
  std::vector<double> values(bytes.size() / sizeof(double));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(double));
  return values;
}

std::string unless_it_fails(const std::function<std::string()>& simulate) {
  try {
    return kDone + simulate();
  } catch (const InterruptedError&) {
    throw;
  } catch (const Error& error) {
    return kFailed + std::string(error.what());
  }
}

bool computes_gradients(Job job, const Data& data) {
  job.cluster.cost_only = true;
  try {
    resolve(job, data);
    return false;
  } catch (const ConfigError&) {
    return true;
  }
}

// All epochs of the job, as if its target were reached at their end.
double whole_time(const Candidate& candidate, bool gradients, const Data& data,
                  const std::atomic<bool>& stop) {
  Learning all;
  all.evaluations = candidate.evaluations;
  all.steps = candidate.evaluations * candidate.steps_each;
  all.reached_at = {{0, std::llround(candidate.evaluations)}};
  return times_to_target(candidate.choice.job, candidate.plan, all, data, rough_effort(gradients),
                         stop)
      .times_s.front();
}

}  // namespace

double known_time(double time_s) {
  if (!(time_s > 0)) throw Error("so little of the run was simulated that it tells no time");
  return time_s;
}

std::string look_at(const Candidate& candidate, const Data& data, const std::atomic<bool>& stop) {
  return unless_it_fails([&] {
    const Job& job = candidate.choice.job;
    const StepFigures step = simulate_steps(job, data, stop);
    const bool gradients = computes_gradients(job, data);
    const double whole_s = known_time(whole_time(candidate, gradients, data, stop));
    return std::string(reinterpret_cast<const char*>(&step), sizeof step) +
           packed_times({gradients ? 1.0 : 0.0, whole_s});
  });
}

FirstLook first_look_in(const std::string& reply) {
  FirstLook look;
  if (reply.starts_with(kFailed)) {
    look.failure = reply.substr(1);
    return look;
  }
  TUTTI_CHECK(reply.size() == 1 + sizeof(StepFigures) + 2 * sizeof(double));
  std::memcpy(&look.step, reply.data() + 1, sizeof(StepFigures));
  const std::vector<double> values = unpacked_times(reply.substr(1 + sizeof(StepFigures)));
  look.needs_gradients = values[0] > 0;
  look.whole_s = values[1];
  return look;
}

std::string simulate_times(const Choice& choice, const Plan& plan, bool with_little,
                           const Data& data, const std::atomic<bool>& stop) {
  return unless_it_fails([&] {
    TimesToTarget found = times_to_target(choice.job, plan, choice.learning, data,
                                          with_little ? kLeastEffort : kMostEffort, stop);
    for (const double time_s : found.times_s) known_time(time_s);
    found.times_s.push_back(found.error);
    return packed_times(found.times_s);
  });
}

std::string simulate_on(const Choice& choice, const ClusterConfig& cluster, bool needs_gradients,
                        const Data& data, const std::atomic<bool>& stop) {
  return unless_it_fails([&] {
    Job job = with_settings(choice.open, {});
    job.cluster = cluster;
    job.strategy->fit(job.cluster);
    const Resolved planned = resolve(job, data);
    require_memory(planned.job, planned.plan);
    Learning learning = choice.learning;
    if (needs_gradients) learning.reached_at = {{0, std::llround(learning.evaluations)}};
    const double time_s = times_to_target(planned.job, planned.plan, learning, data,
                                          rough_effort(needs_gradients), stop)
                              .mean_s();
    return packed_times({known_time(time_s), 0});
  });
}

TimesToTarget times_in(const std::string& reply) {
  TimesToTarget found;
  if (reply.starts_with(kFailed)) return found;
  found.times_s = unpacked_times(reply.substr(1));
  found.error = found.times_s.back();
  found.times_s.pop_back();
  return found;
}

}  // namespace tutti
