// Tests how many steps a run has, for any job that is accepted: nothing is left out, nothing is
// learnt twice, and no honest worker is sent away.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "core/error.h"
#include "core/random.h"
#include "tests/strategies/parameter_server/runs.h"
#include "tests/support/thorough.h"

namespace tutti {
namespace {

using namespace testing_support;

struct Shape {
  int64_t workers, servers, samples, batch, epochs, max_steps;
  std::string consistency;
  Settings settings;
};

Shape random_shape(Random& random) {
  const auto from = [&](int64_t least, int64_t most) {
    return least + static_cast<int64_t>(random.below(static_cast<uint64_t>(most - least + 1)));
  };
  const auto one_of = [&](std::initializer_list<const char*> choices) {
    return std::string(choices.begin()[random.below(choices.size())]);
  };
  Shape s{from(1, 5), from(1, 3), from(20, 120), from(5, 60), from(1, 5), 0, "", {}};
  if (random.below(3) == 0) s.max_steps = from(1, 12);
  s.consistency = one_of({"bsp", "bsp", "asp", "ssp", "adaptive", "waiting", "backup"});
  const bool free = s.consistency != "bsp" && s.consistency != "backup";
  s.settings = {fmt::format("task.data.samples={}", s.samples),
                fmt::format("task.global_batch={}", s.batch),
                fmt::format("task.epochs={}", s.epochs),
                fmt::format("task.max_steps={}", s.max_steps),
                "task.data.features=4",
                "task.data.classes=2"};
  const auto set = [&](const std::string& key, const auto& value) {
    s.settings.push_back(fmt::format("{}={}", key, value));
  };
  if (s.consistency != "backup" && random.below(3) > 0) set("strategy.pull_every", from(2, 9));
  if (s.consistency == "backup") set("strategy.backup", from(0, s.workers - 1));
  if (free) set("strategy.staleness", from(1, 6));
  if (free && random.below(2) == 0) set("strategy.prefetch", "true");
  if (free && random.below(2) == 0)
    set("strategy.rate", one_of({"staleness", "worker", "dynamic"}));
  if (s.servers > 1 && random.below(3) == 0) set("strategy.replicas", 1);
  if (random.below(3) == 0) set("task.partition", one_of({"disjoint", "reshuffle"}));
  if (random.below(3) == 0) set("cluster.cost_only", "true");
  if (random.below(2) == 0) set("optimizer.kind", one_of({"momentum", "adam"}));
  return s;
}

// Returns nothing when the job is refused, since not all settings go together.
std::optional<Job> job_of(const Shape& shape, Random& random) {
  std::optional<Job> job;
  try {
    job = load_job("", logistic_task() + shape.settings +
                           servers(static_cast<int>(shape.servers), shape.consistency) +
                           cluster("virtual", static_cast<int>(shape.workers)));
  } catch (const ConfigError&) {
    return job;
  }
  if (random.below(2) == 0)
    job->cluster.stragglers.push_back(
        {.kind = StragglerKind::kRandom, .factor = 10, .probability = 0.2});
  if (random.below(2) == 0) job->cluster.stragglers.push_back({.node = 0, .factor = 3});
  return job;
}

std::string described(const Shape& shape) {
  return fmt::format("{} workers, {} servers, {}: {}", shape.workers, shape.servers,
                     shape.consistency, fmt::join(shape.settings, " "));
}

TEST(AnyJob, HasTheStepsAndSamplesThatItNames) {
  int tried = 0;
  for (uint64_t seed = 1; seed <= seeds(40, 1500); ++seed) {
    Random random(seed, Stream::kTest);
    const Shape shape = random_shape(random);
    std::optional<Job> job = job_of(shape, random);
    if (!job) continue;
    SCOPED_TRACE(fmt::format("seed {}: {}", seed, described(shape)));
    RunRecord record;
    try {
      record = run_job(*job);
    } catch (const ConfigError&) {
      continue;
    }
    ++tried;
    EXPECT_EQ(record.status, RunStatus::kDone) << record.error;
    EXPECT_EQ(counter(record, "workers_expelled") + counter(record, "stale_reads") +
                  counter(record, "pushes_duplicated"),
              0);
    if (record.status != RunStatus::kDone) continue;
    const Data data = load_data(job->task.data, job->task.seed, job->base_dir);
    const auto train = static_cast<int64_t>(data.splits.train.size());
    const int64_t in_epoch = (train + shape.batch - 1) / shape.batch;
    int64_t steps = 0, samples = 0;
    for (int64_t epoch = 0; epoch < shape.epochs; ++epoch)
      for (int64_t step = 0; step < in_epoch; ++step) {
        if (shape.max_steps > 0 && steps == shape.max_steps) break;
        ++steps;
        samples += std::min(shape.batch, train - step * shape.batch);
      }
    const EvaluationRow& last = record.evaluations.back();
    if (shape.consistency == "backup" && shape.max_steps > 0) continue;  // limits closed steps
    const bool shares = job->task.partition != Partition::kGlobal;
    if (!(shares && shape.max_steps > 0)) {
      EXPECT_EQ(last.samples, samples);
    }
    if (shape.consistency != "backup") {
      EXPECT_EQ(last.step, steps);
    }
  }
  EXPECT_GT(tried, 20);
}

// One worker is lost at some time and perhaps started again, possibly when the run is already over.
void lose_one(uint64_t seed) {
  Random random(seed, Stream::kFault);
  const Shape shape = random_shape(random);
  std::optional<Job> job = job_of(shape, random);
  if (!job || shape.workers < 2) return;
  job->cluster.timeout_s = 100;
  FaultConfig& fault = job->cluster.faults.emplace_back();
  fault.at_s = 0.02 * random.uniform() * random.uniform();
  fault.nodes = {static_cast<int64_t>(random.below(static_cast<uint64_t>(shape.workers)))};
  if (random.below(2) == 0) fault.restart_s = 0.005 * random.uniform();
  SCOPED_TRACE(fmt::format("seed {}: {}; rank {} at {}, back after {}", seed, described(shape),
                           fault.nodes[0], fault.at_s, fault.restart_s));
  RunRecord record;
  try {
    record = run_job(*job);
  } catch (const ConfigError&) {
    return;
  }
  EXPECT_EQ(record.status, RunStatus::kDone) << record.error;
  EXPECT_EQ(counter(record, "workers_expelled") + counter(record, "stale_reads"), 0);
}

// The others go on, and nobody is sent away. With seed 1224, a worker that came back has not read
// the parameters on which the work of a lost one must be repeated. With 1475 it comes back while
// the others measure the final quality, with 1480 when the chains of servers are just being closed.
TEST(AnyJob, GoesOnWithoutAWorker) {
  for (uint64_t seed = 1; seed <= seeds(50, 1500); ++seed) lose_one(seed);
  for (const uint64_t seed : {1224u, 1475u, 1480u}) lose_one(seed);
}

}  // namespace
}  // namespace tutti
