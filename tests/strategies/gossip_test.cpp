// Gossip on nodes: the mean stays, distances shrink as the spectral gap says, D-PSGD by hand, and
// what happens when somebody is lost.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/error.h"
#include "core/random.h"
#include "jobs/plugins.h"
#include "strategies/gossip/neighbour_average.h"
#include "tests/support/faults.h"
#include "tests/support/linear_reference.h"

namespace tutti {
namespace {

using namespace testing_support;

constexpr size_t kValues = 40;

// Runs some rounds from random values; the values of every node after each round.
std::vector<std::vector<std::vector<float>>> gossip(const std::string& fabric,
                                                    const std::string& name, int nodes,
                                                    uint64_t rounds) {
  ClusterConfig cluster;
  cluster.fabric = value_of(fabric, cluster.fabric);
  cluster.workers = nodes;
  cluster.timeout_s = 60;
  const auto made =
      make_fabric(cluster, std::vector<std::string>(static_cast<size_t>(nodes), "worker"), 1);
  const std::atomic<bool> never{false};
  const auto outcomes = made->run(
      [&](Node& node) {
        Random random(5, Stream::kTest, static_cast<uint32_t>(node.endpoint().rank()));
        std::vector<float> values(kValues);
        for (float& value : values) value = static_cast<float>(random.normal());
        NeighbourAverage neighbours(node, nullptr, graph(name), 3, kValues);
        nlohmann::json history = {values};
        for (uint64_t round = 0; round < rounds; ++round) {
          neighbours.average(values, round);
          history.push_back(values);
        }
        return history.dump();
      },
      never);
  std::vector<std::vector<std::vector<float>>> by_node;
  for (const NodeOutcome& outcome : outcomes) {
    EXPECT_EQ(outcome.kind, NodeOutcome::Kind::kDone) << outcome.error;
    by_node.push_back(nlohmann::json::parse(outcome.result));
  }
  return by_node;
}

double mean_of(const auto& by_node, size_t round, size_t k) {
  double sum = 0;
  for (const auto& node : by_node) sum += double{node[round][k]};
  return sum / static_cast<double>(by_node.size());
}

double distance_of(const auto& by_node, size_t round) {
  double squares = 0;
  for (size_t k = 0; k < kValues; ++k)
    for (const auto& node : by_node)
      squares += std::pow(double{node[round][k]} - mean_of(by_node, round, k), 2);
  return std::sqrt(squares / static_cast<double>(by_node.size()));
}

class GossipOnEveryGraph : public testing::TestWithParam<GraphEntry> {};

TEST_P(GossipOnEveryGraph, KeepsTheMeanInEveryRound) {
  for (const int nodes : {1, 2, 4, 6, 9}) {
    const auto by_node = gossip("virtual", std::string(GetParam().name), nodes, 10);
    for (size_t round = 1; round <= 10; ++round)
      for (size_t k = 0; k < kValues; ++k)
        EXPECT_NEAR(mean_of(by_node, round, k), mean_of(by_node, round - 1, k), 1e-6);
  }
}

TEST_P(GossipOnEveryGraph, IsTheSameInProcesses) {
  EXPECT_EQ(gossip("process", std::string(GetParam().name), 4, 5),
            gossip("virtual", std::string(GetParam().name), 4, 5));
}

// Pure averaging is gossip on a quadratic: per round the distance shrinks by 1 - gap at least, and
// in the long run, when the slowest part is all that is left, by no more than that.
TEST_P(GossipOnEveryGraph, ContractsAtTheRateOfTheSpectralGap) {
  if (GetParam().name == "random_match") return;  // only in the mean, see below
  for (const int nodes : {6, 9, 12}) {
    const auto n = static_cast<size_t>(nodes);
    const size_t period = GetParam().period(n);
    const auto rounds = static_cast<size_t>(24 / period * period);
    const auto by_node = gossip("virtual", std::string(GetParam().name), nodes, rounds);
    const double factor = 1 - spectral_gap(GetParam(), n);
    for (size_t round = period; round <= rounds; round += period) {
      const double before = distance_of(by_node, round - period);
      // Below the rounding of floats there is nothing left to shrink.
      EXPECT_LE(distance_of(by_node, round),
                std::pow(factor, static_cast<double>(period)) * before + 1e-5)
          << nodes << " workers, round " << round;
    }
    if (GetParam().name != "ring") continue;
    const double last = distance_of(by_node, rounds) / distance_of(by_node, rounds - 4);
    EXPECT_NEAR(std::pow(last, 0.25), factor, 0.02) << nodes;
  }
}

INSTANTIATE_TEST_SUITE_P(Graphs, GossipOnEveryGraph, testing::ValuesIn(graph_catalog()),
                         [](const auto& test) { return std::string(test.param.name); });

// Squares shrink by (1 - gap)^2 on average: over 40 rounds the rate is within a tenth of it.
TEST(Gossip, RandomMatchingsContractAtTheRateOfTheirGapOnAverage) {
  const auto by_node = gossip("virtual", "random_match", 12, 40);
  const double rate = std::pow(distance_of(by_node, 40) / distance_of(by_node, 0), 1.0 / 40);
  EXPECT_NEAR(rate, 1 - spectral_gap(graph("random_match"), 12), 0.1);
}

Settings gossip_settings(const Settings& more) {
  return linear_task() +
         Settings{"strategy.kind=gossip", "cluster.fabric=virtual", "cluster.workers=4",
                  "task.max_steps=2"} +
         more;
}

// Two rounds of D-PSGD on a ring of four, in both orders; the result is the mean of all.
TEST(Gossip, TwoRoundsByHandInBothOrders) {
  for (const bool adapt_first : {true, false}) {
    const Settings settings =
        gossip_settings({std::string("strategy.order=") +
                         (adapt_first ? "adapt_then_combine" : "combine_then_adapt")});
    const LinearReference reference(settings);
    std::vector<Vector> x(4, reference.initial());
    const auto mix = [&] {
      std::vector<Vector> mixed = x;
      for (size_t i = 0; i < 4; ++i)
        for (size_t k = 0; k < x[i].size(); ++k)
          mixed[i][k] = (x[i][k] + x[(i + 1) % 4][k] + x[(i + 3) % 4][k]) / 3;
      x = mixed;
    };
    for (const int64_t step : {0, 1}) {
      std::vector<Vector> g;
      for (size_t i = 0; i < 4; ++i)
        g.push_back(reference.gradient(step, static_cast<int64_t>(i), x[i]));
      if (!adapt_first) mix();
      for (size_t i = 0; i < 4; ++i)
        for (size_t k = 0; k < x[i].size(); ++k) x[i][k] -= 0.1 * g[i][k];
      if (adapt_first) mix();
    }
    Vector mean(x[0].size());
    for (const Vector& own : x)
      for (size_t k = 0; k < mean.size(); ++k) mean[k] += own[k] / 4;
    expect_close(parameters_after(settings), mean);
  }
}

TEST(Gossip, RecordsDistanceOverTimeAndTheGap) {
  const RunRecord record = run(gossip_settings({"task.max_steps=6", "task.eval_every=0.01"}));
  ASSERT_EQ(record.status, RunStatus::kDone) << record.error;
  const Extra& extra = record.nodes[0].extra;
  EXPECT_NEAR(extra.figures.at("spectral_gap"), 2.0 / 3, 1e-9);  // a ring of 4
  const auto& points = extra.series.at("consensus_distance").points;
  ASSERT_EQ(points.size(), 6u);
  for (const auto& [step, value] : points) EXPECT_GT(value, 0);
  EXPECT_EQ(record.evaluations.size(), 6u);
}

TEST(Gossip, WorksWithCostsAlone) {
  for (const GraphEntry& entry : graph_catalog()) {
    const Settings settings =
        gossip_settings({"strategy.graph=" + std::string(entry.name), "task.max_steps=5"});
    const RunRecord with = run(settings);
    const RunRecord without = run(settings + Settings{"cluster.cost_only=true"});
    ASSERT_EQ(without.status, RunStatus::kDone) << without.error;
    EXPECT_EQ(with.nodes[0].bytes_sent, without.nodes[0].bytes_sent);
    EXPECT_NEAR(with.nodes[0].total_s, without.nodes[0].total_s, 1e-9);
  }
}

TEST(Gossip, RefusesWhatContradicts) {
  for (const Settings& bad :
       {Settings{"strategy.graph=torus", "cluster.workers=5"}, Settings{"task.deterministic=true"},
        Settings{"strategy.mode=async", "cluster.cost_only=true"}})
    EXPECT_THROW(resolve(load_job("", gossip_settings(bad))), ConfigError) << bad[0];
}

TEST(AsyncGossip, EndsWithTheSameParametersEverywhereAndAboutAllSamples) {
  for (const char* fabric : {"virtual", "process"})
    for (const GraphEntry& entry : graph_catalog()) {
      const Settings settings =
          logistic_task() + Settings{"strategy.kind=gossip",
                                     "strategy.mode=async",
                                     "strategy.graph=" + std::string(entry.name),
                                     "task.epochs=5",
                                     "cluster.fabric=" + std::string(fabric),
                                     "cluster.workers=4"};
      const RunRecord record = run(settings);
      ASSERT_EQ(record.status, RunStatus::kDone) << record.error;
      for (const NodeReport& node : record.nodes)
        EXPECT_EQ(node.parameters_sha256, record.nodes[0].parameters_sha256);
      const Job job = load_job("", settings);
      const Data data = load_data(job.task.data, job.task.seed, job.base_dir);
      // The end is reckoned by the others' pace. A run of milliseconds on more processes than cores
      // has none that lasts, so there only half is asked for.
      const double least = job.cluster.fabric == FabricKind::kVirtual ? 0.8 : 0.5;
      EXPECT_GE(static_cast<double>(record.evaluations.back().samples),
                least * static_cast<double>(5 * data.splits.train.size()));
      EXPECT_GT(record.evaluations.back().quality, 0.9);
    }
}

// Fast workers do what slow ones cannot: the run ends in a fraction of the slow one's time.
TEST(AsyncGossip, DoesNotWaitForAStraggler) {
  Job job = load_job(
      "", logistic_task() + Settings{"strategy.kind=gossip", "strategy.mode=async",
                                     "task.epochs=20", "cluster.fabric=virtual",
                                     "cluster.workers=4", "cluster.step_overhead=0",
                                     "cluster.layer_overhead=0", "cluster.speed=\"10 MFLOP/s\""});
  job.cluster.stragglers.push_back({.node = 2, .factor = 10});
  const RunRecord record = run_job(job);
  ASSERT_EQ(record.status, RunStatus::kDone) << record.error;
  EXPECT_GT(record.nodes[1].steps, 5 * record.nodes[2].steps);
}

// What docs/decentralised.md says of the two recipes. Virtual time, so it replays exactly.
TEST(AsyncGossip, FinishesTheStragglersRecipeTwoAndAHalfTimesSoonerThanARing) {
  const auto seconds = [](const std::string& recipe, const Settings& settings) {
    Job job = load_job(std::string(TUTTI_SOURCE) + "/recipes/" + recipe, settings);
    const RunRecord record = run_job(job);
    EXPECT_EQ(record.status, RunStatus::kDone) << record.error;
    double longest = 0;
    for (const NodeReport& node : record.nodes) longest = std::max(longest, node.total_s);
    return longest;
  };
  EXPECT_GT(seconds("stragglers.toml", {"strategy.topology=ring"}),
            2.5 * seconds("stragglers-gossip.toml", {}));
}

TEST(AsyncGossip, StopsEverywhereWhenTheTargetIsReached) {
  const RunRecord record =
      run(logistic_task() + Settings{"strategy.kind=gossip", "strategy.mode=async",
                                     "cluster.fabric=virtual", "cluster.workers=3",
                                     "task.epochs=200", "task.eval_every=0.5", "task.target=0.9",
                                     "task.stop_at_target=true"});
  ASSERT_EQ(record.status, RunStatus::kDone) << record.error;
  EXPECT_LT(record.evaluations.back().epoch, 100);
}

// News of how far others are is old when it arrives, the older the more workers there are and the
// slower the network is. Training ends where the task does all the same, and its steps are counted
// in global batches.
TEST(FreePace, TrainsOnAsManySamplesAsTheTaskHas) {
  const Settings slow_network = {"cluster.bandwidth=\"100 Mbit/s\"", "cluster.latency=\"200 us\""};
  const Settings straggler = {"cluster.stragglers=[{ kind = \"constant\", node = 1, factor = 5 }]"};
  for (const char* kind : {"strategy.kind=gossip", "strategy.kind=elastic_averaging"})
    for (const char* workers : {"8", "32"})
      for (const Settings& cluster : {Settings{}, slow_network, slow_network + straggler}) {
        const RunRecord record =
            run(logistic_task() +
                Settings{kind, "strategy.mode=async", "cluster.fabric=virtual",
                         std::string("cluster.workers=") + workers, "task.data.samples=5000",
                         "task.global_batch=64", "task.epochs=6"} +
                cluster);
        ASSERT_EQ(record.status, RunStatus::kDone) << record.error;
        const auto asked = static_cast<double>(record.course.samples);
        ASSERT_GT(asked, 6 * 3000);
        // The run is some twenty messages long, and one is what nobody knows yet.
        EXPECT_NEAR(static_cast<double>(record.evaluations.back().samples), asked, 0.05 * asked)
            << kind << " " << workers;
        for (const EvaluationRow& row : record.evaluations)
          EXPECT_LE(row.step, std::llround(1.05 * asked / 64)) << kind << " " << workers;
      }
}

}  // namespace
}  // namespace tutti
