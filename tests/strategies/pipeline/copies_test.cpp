// Stages on several nodes each, which take micro-batches in turn.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "core/error.h"
#include "core/random.h"
#include "models/stage.h"
#include "strategies/pipeline/placement.h"
#include "strategies/pipeline/stage_costs.h"
#include "tests/support/parameters.h"
#include "tests/support/thorough.h"

namespace tutti {
namespace {

using namespace testing_support;

Settings task_with_copies(const std::string& copies, int workers, const std::string& fabric) {
  return {"task.data.kind=synthetic-classes",
          "task.data.samples=480",
          "task.data.features=16",
          "task.data.classes=4",
          "task.model.kind=mlp",
          "task.model.hidden=[12, 10, 8]",
          "task.model.dropout=0.2",
          "task.global_batch=37",
          "task.epochs=2",
          "optimizer.kind=adam",
          "optimizer.lr=0.01",
          "cluster.timeout=60",
          "strategy.kind=pipeline",
          "strategy.copies=" + copies,
          "cluster.workers=" + std::to_string(workers),
          "cluster.fabric=" + fabric};
}

const Settings kExact = {"task.deterministic=true", "task.lanes=8"};

// However many nodes a stage is on, the model is that of one worker alone, bit by bit.
TEST(PipelineCopies, LearnWhatOneWorkerDoes) {
  Settings alone = task_with_copies("0", 1, "process") + kExact;
  const std::string expected = checksum(alone + Settings{"strategy={ kind = \"solo\" }"});
  for (const char* fabric : {"process", "virtual"})
    for (const char* schedule : {"gpipe", "1f1b"}) {
      const Settings more =
          kExact + Settings{std::string("strategy.schedule=\"") + schedule + "\""};
      EXPECT_EQ(checksum(task_with_copies("[2, 1, 1]", 4, fabric) + more), expected) << fabric;
      EXPECT_EQ(checksum(task_with_copies("[1, 3]", 4, fabric) + more), expected) << fabric;
      EXPECT_EQ(checksum(task_with_copies("2", 4, fabric) + more), expected) << fabric;
    }
  const Settings large = {"task.model.hidden=[4000, 16]", "task.max_steps=4"};  // not sent eagerly
  EXPECT_EQ(checksum(task_with_copies("[2, 1]", 3, "process") + kExact + large),
            checksum(alone + large + Settings{"strategy={ kind = \"solo\" }"}));
}

TEST(PipelineCopies, MeasureQualityLikeOneWorker) {
  const RunRecord one = run(task_with_copies("0", 1, "virtual") + kExact);
  const RunRecord four = run(task_with_copies("[1, 2, 1]", 4, "virtual") + kExact);
  ASSERT_EQ(four.status, RunStatus::kDone) << four.error;
  ASSERT_EQ(one.evaluations.size(), four.evaluations.size());
  for (size_t i = 0; i < one.evaluations.size(); ++i) {
    EXPECT_EQ(one.evaluations[i].quality, four.evaluations[i].quality);
    EXPECT_EQ(one.evaluations[i].loss, four.evaluations[i].loss);
  }
}

TEST(PipelineCopies, CostTheSameWithoutTheArithmetic) {
  const Settings cut = {"strategy.stages=[3, 6]"};  // or they would follow the bandwidth
  const Settings task = task_with_copies("[2, 1, 1]", 4, "virtual") + cut;
  const RunRecord full = run(task), cost = run(task + Settings{"cluster.cost_only=true"});
  const RunRecord real = run(task_with_copies("[2, 1, 1]", 4, "process") + cut);
  ASSERT_EQ(cost.status, RunStatus::kDone) << cost.error;
  for (size_t rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(full.nodes[rank].total_s, cost.nodes[rank].total_s);
    EXPECT_EQ(full.nodes[rank].bytes_sent, real.nodes[rank].bytes_sent);
    EXPECT_EQ(full.nodes[rank].messages, real.nodes[rank].messages);
  }
}

// Most of the arithmetic is in layers with few weights, and most weights in layers with little: the
// programme copies the first and not the second, as PipeDream does with VGG-16; and a step is the
// faster for it than with whole copies or with one node for each stage.
TEST(PipelineCopies, AutoCopiesWhatIsSlowAndSmall) {
  const Settings task = {"task.data.kind=fashion-mnist",
                         "task.data.limit=256",
                         "task.model.kind=lenet",
                         "task.global_batch=128",
                         "task.max_steps=2",
                         "cluster.fabric=virtual",
                         "cluster.workers=4",
                         "cluster.cost_only=true",
                         "cluster.bandwidth=\"1 Gbit/s\"",
                         "cluster.latency=\"50 us\"",
                         "cluster.speed=\"20 GFLOP/s\"",
                         "strategy.kind=pipeline"};
  Job job = load_job("", task + Settings{"strategy.copies=\"auto\""});
  const auto lines = resolve(job).plan.reasons;
  EXPECT_NE(lines.at(1).find("ranks 0 to 2 in turn"), std::string::npos) << lines.at(1);
  EXPECT_NE(lines.at(2).find("stage 1 on rank 3"), std::string::npos) << lines.at(2);
  const auto time_of = [&](const std::string& setting) {
    const RunRecord record = run(task + Settings{setting});
    EXPECT_EQ(record.status, RunStatus::kDone) << record.error;
    return record.nodes.at(0).total_s;
  };
  const double chosen_s = time_of("strategy.copies=\"auto\"");
  EXPECT_LT(chosen_s, time_of("strategy.copies=4"));
  EXPECT_LT(chosen_s, time_of("strategy.copies=0"));
}

// Visits all ways to cut a chain into stages and to give them all nodes, as settings of a job.
void for_each_way(size_t pieces, size_t nodes, std::vector<Range>& stages,
                  std::vector<size_t>& copies, const std::function<void()>& visit) {
  const size_t begin = stages.empty() ? 0 : stages.back().end;
  for (size_t end = begin + 1; end <= pieces; ++end)
    for (size_t count = 1; count <= nodes; ++count) {
      if ((end == pieces) != (count == nodes)) continue;
      stages.push_back({begin, end});
      copies.push_back(count);
      if (end == pieces)
        visit();
      else
        for_each_way(pieces, nodes - count, stages, copies, visit);
      stages.pop_back();
      copies.pop_back();
    }
}

struct Ways {
  double chosen_s = 0, least_s = INFINITY;
  size_t accepted = 0;
};

// Compares what `tutti check` shows for the chosen plan with all plans that it accepts.
Ways all_ways(const Job& job, const PipelineConfig& settings) {
  const Resolved resolved = resolve(job);
  const PlanInput input{job.task, job.cluster, job.optimizer, resolved.architecture};
  PipelineConfig config = settings;
  config.copies.automatic = true;
  Ways result;
  const Alternative chosen = estimated(place_stages(config, input), config, input);
  result.chosen_s = chosen.step_s;
  const auto pieces = stages_between(resolved.architecture, resolved.architecture.cuts());
  std::vector<Range> stages;
  std::vector<size_t> copies;
  for_each_way(pieces.size(), static_cast<size_t>(job.cluster.workers), stages, copies, [&] {
    PipelineConfig given = settings;
    for (size_t s = 1; s < stages.size(); ++s)
      given.stages.places.push_back(static_cast<int64_t>(pieces[stages[s].begin].begin));
    given.stages.parts = stages.size() == 1 ? 1 : 0;
    given.copies.places.assign(copies.begin(), copies.end());
    try {
      const Alternative other = estimated(place_stages(given, input), given, input);
      if (!other.fits && chosen.fits) return;
      EXPECT_TRUE(chosen.fits || !other.fits);
      ++result.accepted;
      result.least_s = std::min(result.least_s, other.step_s);
    } catch (const ConfigError&) {
      // It is no plan.
    }
  });
  return result;
}

TEST(PipelineCopies, AutoIsTheFastestOfAllWaysByWhatCheckShows) {
  const auto expect_least = [](const Settings& cluster, const char* hidden) {
    const Job job =
        load_job("", Settings{"task.data.kind=synthetic-classes", "task.data.features=64",
                              "task.model.kind=mlp", std::string("task.model.hidden=") + hidden,
                              "task.global_batch=48", "cluster.fabric=virtual",
                              "strategy.kind=pipeline", "strategy.copies=auto"} +
                         cluster);
    const Ways ways = all_ways(job, {});
    EXPECT_EQ(ways.chosen_s, ways.least_s) << hidden << " on " << cluster[0];
  };
  for (const char* workers : {"2", "3", "5"})
    for (const char* bandwidth : {"100 Mbit/s", "1 Gbit/s", "100 Gbit/s"})
      for (const char* hidden : {"[512, 16]", "[16, 700, 300]", "[64, 64, 64, 64]"})
        expect_least({std::string("cluster.workers=") + workers,
                      std::string("cluster.bandwidth=\"") + bandwidth + "\""},
                     hidden);
  // Slow nodes make the order of nodes matter.
  expect_least({"cluster.workers=4", "cluster.speed_factors=[1, 0.2, 0.5, 1]"}, "[300, 300]");
}

struct RandomCase {
  Settings job;
  PipelineConfig config;
};

// Draws models, batches, networks from home lines to fast ones, near and far, and unequal nodes.
RandomCase random_case(Random& random, int64_t most_workers, size_t most_layers) {
  const auto one_of = [&](std::initializer_list<const char*> choices) {
    return std::string(choices.begin()[random.below(choices.size())]);
  };
  const auto from = [&](int64_t least, int64_t most) {
    return least + static_cast<int64_t>(random.below(static_cast<uint64_t>(most - least + 1)));
  };
  const int64_t workers = from(2, most_workers);
  std::vector<int64_t> hidden;
  for (size_t i = 1 + random.below(most_layers); i > 0; --i)
    hidden.push_back(int64_t{1} << from(2, 11));
  std::vector<double> speeds;
  for (int64_t i = 0; i < workers; ++i)
    speeds.push_back(random.below(2) == 0 ? 1 : 0.1 + 0.9 * random.uniform());
  RandomCase drawn;
  drawn.job = {"task.data.kind=synthetic-classes",
               "task.data.samples=200",
               fmt::format("task.data.features={}", from(4, 600)),
               "task.model.kind=mlp",
               fmt::format("task.model.hidden=[{}]", fmt::join(hidden, ", ")),
               fmt::format("task.global_batch={}", from(4, 100)),
               fmt::format("cluster.workers={}", workers),
               "cluster.fabric=virtual",
               "cluster.bandwidth=" + one_of({"\"10 Mbit/s\"", "\"1 Gbit/s\"", "\"100 Gbit/s\""}),
               "cluster.latency=" + one_of({"\"1 us\"", "\"50 us\"", "\"5 ms\""}),
               fmt::format("cluster.speed_factors=[{}]", fmt::join(speeds, ", ")),
               "strategy.kind=pipeline",
               "strategy.copies=auto"};
  if (random.below(3) == 0)
    drawn.job.push_back(fmt::format("cluster.memory=\"{} MB\"", from(1, 60)));
  drawn.config.schedule = value_of(one_of({"gpipe", "1f1b"}), drawn.config.schedule);
  drawn.config.topology = one_of({"ring", "butterfly", "tree"});
  if (random.below(3) == 0) drawn.config.micro_batches = from(1, 12);
  return drawn;
}

// Small enough that all ways are tried: nothing may be faster.
TEST(PipelineCopies, AutoIsNeverBeatenByAPlanThatCheckAccepts) {
  size_t compared = 0;
  for (uint64_t seed = 1; seed <= seeds(60, 1000); ++seed) {
    Random random(seed, Stream::kTest);
    const RandomCase drawn = random_case(random, 5, 2);
    SCOPED_TRACE(fmt::format("seed {}: {}", seed, fmt::join(drawn.job, " ")));
    try {
      const Ways ways = all_ways(load_job("", drawn.job), drawn.config);
      EXPECT_LE(ways.chosen_s, ways.least_s);
      compared += ways.accepted;
    } catch (const ConfigError&) {
      continue;  // too few samples for so many nodes
    }
  }
  EXPECT_GT(compared, 300u);
}

// Where there are too many ways to try, the search comes close to the best of them by what check
// shows. With fewer starts it took plans that were 40 % (seed 12), 12 % (24) and 9 % (26) slower.
void expect_close(uint64_t seed) {
  Random random(seed, Stream::kTest);
  const RandomCase drawn = random_case(random, 9, 9);
  SCOPED_TRACE(fmt::format("seed {}: {}", seed, fmt::join(drawn.job, " ")));
  try {
    const Ways ways = all_ways(load_job("", drawn.job), drawn.config);
    EXPECT_LE(ways.chosen_s, 1.05 * ways.least_s);
  } catch (const ConfigError&) {
    return;  // too few samples for so many nodes
  }
}

TEST(PipelineCopies, AutoComesCloseToTheBestOfManyWays) {
  for (const uint64_t seed : {12u, 24u, 26u}) expect_close(seed);
  for (uint64_t seed = 1; seed <= seeds(0, 40); ++seed) expect_close(seed);
}

// Two micro-batches keep three stages of two nodes each busy.
TEST(PipelineCopies, NeedASampleForEachCopyAndNotForEachNode) {
  const Settings small = {"task.global_batch=4", "task.max_steps=5"};
  EXPECT_EQ(checksum(task_with_copies("2", 6, "virtual") + kExact + small),
            checksum(task_with_copies("0", 1, "process") + kExact + small +
                     Settings{"strategy={ kind = \"solo\" }"}));
  for (const char* fabric : {"virtual", "process"})
    EXPECT_EQ(run(task_with_copies("[2, 2, 2]", 6, fabric) + small).status, RunStatus::kDone);
  EXPECT_NE(refusal(task_with_copies("[5, 1]", 6, "virtual") + small).find("global_batch = 4"),
            std::string::npos);
  EXPECT_EQ(run(task_with_copies("auto", 6, "virtual") + small).status, RunStatus::kDone);
  EXPECT_NE(refusal(task_with_copies("auto", 30, "virtual") + small).find("strategy.copies"),
            std::string::npos);
  EXPECT_NE(refusal(task_with_copies("0", 6, "virtual") + small +
                    Settings{"strategy={ kind = \"allreduce\" }"})
                .find("global_batch = 4"),
            std::string::npos);
}

TEST(PipelineCopies, ThatDoNotAddUpAreRefused) {
  const auto refused = [](const std::string& copies, const Settings& more) {
    try {
      Job job = load_job("", task_with_copies(copies, 4, "process") + more);
      resolve(job);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(refused("[2, 1, 1]", {}), "");
  EXPECT_NE(refused("[2, 1]", {}).find("cluster.workers = 4"), std::string::npos);
  EXPECT_NE(refused("[2, 1, 1]", {"strategy.stages=2"}).find("strategy.copies"), std::string::npos);
  EXPECT_NE(refused("[2, 1, 1]", {"strategy.schedule=interleaved"}).find("interleaved"),
            std::string::npos);
  EXPECT_NE(refused("[2, 2]", {"strategy.replicas=2"}).find("strategy.replicas"),
            std::string::npos);
  EXPECT_NE(refused("\"auto\"", {"strategy.stages=2"}).find("auto"), std::string::npos);
}

}  // namespace
}  // namespace tutti
