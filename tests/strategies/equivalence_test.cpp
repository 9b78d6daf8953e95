// Equivalence is the proof: a synchronous strategy gives the same parameters as one worker alone,
// bitwise with task.deterministic, on every fabric. A new strategy joins by a line in
// equivalent_strategies().
#include <gtest/gtest.h>

#include <cmath>

#include "collectives/topology.h"
#include "tests/strategies/equivalence.h"
#include "tests/support/parameters.h"

namespace tutti {
namespace {

using namespace testing_support;

struct Variant {
  std::string name;
  Settings settings;
  std::vector<int> workers;
};

std::vector<Variant> equivalent_strategies() {
  std::vector<Variant> variants;
  for (const TopologyEntry& entry : topology_catalog())
    variants.push_back({std::string(entry.name),
                        {"strategy.kind=allreduce", "strategy.topology=" + std::string(entry.name)},
                        {1, 2, 3, 8}});
  variants.push_back(
      {"balanced",
       {"strategy.kind=allreduce", "strategy.topology=ring", "strategy.balance=true"},
       {1, 2, 3, 8}});
  for (const char* servers : {"1", "3", "auto"})
    variants.push_back(
        {"parameter_server" + std::string(servers),
         {"strategy.kind=parameter_server", "strategy.servers=" + std::string(servers)},
         {1, 2, 3, 8}});
  variants.push_back({"pipeline", {"strategy.kind=pipeline"}, {1}});
  // One stage on each of its nodes: data parallel.
  for (const char* replicas : {"2", "8"})
    variants.push_back({"pipeline_replicas" + std::string(replicas),
                        {"strategy.kind=pipeline", "strategy.replicas=" + std::string(replicas)},
                        {std::stoi(replicas)}});
  variants.push_back({"pipeline_servers", {"strategy.kind=pipeline_servers"}, {1}});
  for (const char* copies : {"2", "8"})
    variants.push_back({"pipeline_servers_copies" + std::string(copies),
                        {"strategy.kind=pipeline_servers", "strategy.stages=1",
                         "strategy.copies=" + std::string(copies)},
                        {std::stoi(copies)}});
  variants.push_back({"tensor", {"strategy.kind=tensor"}, {1}});
  variants.push_back({"hybrid", {"strategy.kind=hybrid"}, {1, 2, 8}});  // copies: one layer, whole
  return variants;
}

class Equivalence : public testing::TestWithParam<std::tuple<Variant, std::string>> {};

TEST_P(Equivalence, IsBitwiseSoloForEveryNumberOfWorkers) {
  const auto& [variant, fabric] = GetParam();
  static const std::string expected =
      checksum(logistic_task() + kDeterministic + solo() + on("process", 1));
  for (const int workers : variant.workers) {
    const Settings job = logistic_task() + kDeterministic + variant.settings +
                         network_for(variant.settings, fabric, workers);
    if (variant.name == "hierarchical" && workers < 2) {
      EXPECT_EQ(refusal(job).find("cluster.racks: "), 0u) << "one worker has no second rack";
      continue;
    }
    EXPECT_EQ(checksum(job), expected)
        << variant.name << " on " << fabric << " with " << workers << " workers";
  }
}

INSTANTIATE_TEST_SUITE_P(All, Equivalence,
                         testing::Combine(testing::ValuesIn(equivalent_strategies()),
                                          testing::Values("process", "virtual")),
                         [](const auto& test) {
                           return std::get<0>(test.param).name + "_" + std::get<1>(test.param);
                         });

class EveryOptimizer : public testing::TestWithParam<std::string> {};

TEST_P(EveryOptimizer, IsBitwiseSolo) {
  const Settings task = logistic_task() + kDeterministic +
                        Settings{"optimizer.kind=" + GetParam(), "optimizer.lr=0.01",
                                 "optimizer.weight_decay=0.01", "optimizer.clip_norm=0.5"};
  EXPECT_EQ(checksum(task + solo() + on("virtual", 1)),
            checksum(task + Settings{"strategy.kind=allreduce", "strategy.topology=butterfly"} +
                     on("process", 3)));
}

// On shards, where each server has its part of the state. Clipping needs the whole gradient.
TEST_P(EveryOptimizer, IsBitwiseSoloOnServers) {
  const Settings task = logistic_task() + kDeterministic +
                        Settings{"optimizer.kind=" + GetParam(), "optimizer.lr=0.01",
                                 "optimizer.weight_decay=0.01", "optimizer.schedule=cosine"};
  EXPECT_EQ(checksum(task + solo() + on("virtual", 1)),
            checksum(task + Settings{"strategy.kind=parameter_server", "strategy.servers=2"} +
                     on("process", 3)));
}

std::vector<std::string> optimizer_names() {
  std::vector<std::string> names;
  for (const OptimizerEntry& entry : optimizer_catalog()) names.emplace_back(entry.name);
  return names;
}
INSTANTIATE_TEST_SUITE_P(All, EveryOptimizer, testing::ValuesIn(optimizer_names()),
                         [](const auto& test) { return test.param; });

// Real images through convolutions, pooling and dropout.
TEST(EquivalenceLeNet, IsBitwiseSoloInTwoTopologiesAndBothFabrics) {
  const Settings task = {"task.data=fashion-mnist", "task.data.limit=512",
                         "task.model.kind=lenet",   "task.model.channels=[6, 16]",
                         "task.model.hidden=[120]", "task.global_batch=64",
                         "task.max_steps=4",        "optimizer.kind=nesterov",
                         "optimizer.lr=0.05",       "task.deterministic=true"};
  const std::string expected = checksum(task + solo() + on("process", 1));
  EXPECT_EQ(checksum(task + Settings{"strategy.topology=ring"} + on("virtual", 3)), expected);
  EXPECT_EQ(checksum(task + Settings{"strategy.topology=direct"} + on("process", 2)), expected);
  EXPECT_EQ(checksum(task + Settings{"strategy.topology=ring"} + on("process", 4)), expected);
  const Settings servers = {"strategy.kind=parameter_server", "strategy.servers=2"};
  EXPECT_EQ(checksum(task + servers + on("process", 2)), expected);
  EXPECT_EQ(checksum(task + servers + Settings{"strategy.shards=layers"} + on("virtual", 3)),
            expected);
}

// Stages of a model with convolutions, pooling and dropout; stages times replicas.
TEST(EquivalenceLeNet, PipelinesAreBitwiseSoloForEveryNumberOfStages) {
  const Settings task = {"task.data=fashion-mnist", "task.data.limit=512",
                         "task.model.kind=lenet",   "task.model.channels=[6, 16]",
                         "task.model.hidden=[120]", "task.global_batch=60",
                         "task.max_steps=3",        "optimizer.kind=adam",
                         "optimizer.lr=0.001",      "optimizer.weight_decay=0.01",
                         "task.deterministic=true", "task.lanes=8"};
  const std::string expected = checksum(task + solo() + on("process", 1));
  const Settings pipeline = {"strategy.kind=pipeline"};
  struct Way {
    std::string schedule, fabric;
    int stages;
  };
  for (const Way& way :
       {Way{"1f1b", "process", 1}, Way{"1f1b", "process", 2}, Way{"1f1b", "process", 4},
        Way{"1f1b", "virtual", 4}, Way{"gpipe", "process", 4}, Way{"gpipe", "virtual", 2},
        Way{"sequential", "process", 2}, Way{"sequential", "virtual", 4}})
    EXPECT_EQ(checksum(task + pipeline + Settings{"strategy.schedule=\"" + way.schedule + "\""} +
                       on(way.fabric, way.stages)),
              expected)
        << way.schedule << " on " << way.fabric << " with " << way.stages << " stages";
  for (const char* fabric : {"process", "virtual"}) {
    EXPECT_EQ(checksum(task + pipeline + Settings{"strategy.schedule=interleaved"} + on(fabric, 2)),
              expected);
    EXPECT_EQ(
        checksum(task + pipeline + Settings{"strategy.replicas=2", "strategy.topology=butterfly"} +
                 on(fabric, 4)),
        expected);
  }
  EXPECT_EQ(checksum(task + pipeline + Settings{"strategy.recompute=true"} + on("virtual", 4)),
            expected);
}

// The same stages with their parameters on servers, and copies whose gradients meet there.
TEST(EquivalenceLeNet, ServedPipelinesAreBitwiseSolo) {
  const Settings task = {"task.data=fashion-mnist", "task.data.limit=512",
                         "task.model.kind=lenet",   "task.model.channels=[6, 16]",
                         "task.model.hidden=[120]", "task.global_batch=60",
                         "task.max_steps=3",        "optimizer.kind=adam",
                         "optimizer.lr=0.001",      "optimizer.weight_decay=0.01",
                         "task.deterministic=true", "task.lanes=8"};
  const std::string expected = checksum(task + solo() + on("process", 1));
  const Settings served = {"strategy.kind=pipeline_servers", "strategy.servers=2"};
  for (const char* fabric : {"process", "virtual"}) {
    for (const char* schedule : {"sequential", "gpipe", "1f1b"})
      EXPECT_EQ(checksum(task + served + on(fabric, 4) +
                         Settings{"strategy.schedule=\"" + std::string(schedule) + "\""}),
                expected)
          << schedule << " on " << fabric;
    EXPECT_EQ(checksum(task + served + Settings{"strategy.stages=2", "strategy.copies=[3, 1]"} +
                       on(fabric, 4)),
              expected)
        << "copies on " << fabric;
  }
}

TEST(EquivalenceSeeds, AnotherSeedGivesOtherParameters) {
  const Settings task = logistic_task() + kDeterministic + solo() + on("virtual", 1);
  EXPECT_NE(checksum(task), checksum(task + Settings{"task.seed=2"}));
}

// Quality is a sum of integers: the same whoever evaluates which samples, whatever their size.
TEST(EquivalenceEvaluation, DoesNotDependOnTheWorkersNorCallLargeErrorsDivergence) {
  const Settings task = {"task.data.kind=synthetic-linear",
                         "task.data.samples=4000",
                         "task.data.features=4",
                         "task.data.noise=1e6",
                         "task.model=linear",
                         "task.global_batch=100",
                         "optimizer.lr=0.01",
                         "task.deterministic=true"};
  const RunRecord alone = run(task + solo() + on("process", 1));
  const RunRecord five = run(task + Settings{"strategy.topology=tree"} + on("virtual", 5));
  ASSERT_EQ(alone.status, RunStatus::kDone) << alone.error;
  ASSERT_EQ(five.status, RunStatus::kDone) << five.error;
  ASSERT_FALSE(alone.evaluations.empty());
  EXPECT_GT(alone.evaluations.back().quality, 1e9);
  EXPECT_EQ(alone.evaluations.back().quality, five.evaluations.back().quality);
  EXPECT_EQ(alone.nodes[0].test_quality, five.nodes[0].test_quality);
}

// Settings under which a strategy takes the same steps as one worker alone, up to rounding.
// `averages`: it rounds parameters once more when it averages them.
struct FloatVariant {
  Settings settings;
  bool averages = false;
};
std::vector<FloatVariant> float_variants() {
  std::vector<FloatVariant> variants;
  for (const TopologyEntry& entry : topology_catalog())
    variants.push_back({{"strategy.topology=" + std::string(entry.name)}});
  variants.push_back({{"strategy.topology=ring", "strategy.balance=true"}});
  variants.push_back({{"strategy.topology=ring", "strategy.bucket=4"}});  // weights and biases
  variants.push_back({{"strategy.kind=parameter_server", "strategy.servers=2"}});
  variants.push_back({{"strategy.kind=local_sgd", "strategy.sync_every=1"}});
  // An outer rate just below 1 makes it average parameters, by a difference that does not matter.
  variants.push_back({{"strategy.kind=local_sgd", "strategy.sync_every=1",
                       "strategy.outer={kind=\"sgd\", lr=0.99999999999}"},
                      true});
  const Settings complete = {"strategy.kind=gossip", "strategy.graph=complete"};
  variants.push_back({complete, true});
  variants.push_back({complete + Settings{"strategy.exchange=gradients"}});
  return variants;
}

// Without `deterministic` the sums are the same terms in another order. One component of a
// gradient is the mean over B samples of (p - y) x with |p - y| <= 1, so with unit roundoff u, any
// order of B products and n partial sums is off by at most 2 (B + n + c) u max|x|, where c covers
// the logits (d products each, |w| <= W): their error d u W max|x| moves p by at most twice that,
// and u for the softmax. Gradient descent on a convex loss with lr below 2/L does not amplify a
// difference, so T steps add up: T lr times one step's error, plus T roundings of the update. An
// average of parameters adds n roundings, and three for the difference that it is taken of.
struct FloatBound {
  Settings task;  // logistic, 16 features and a bias, lr 0.1
  std::vector<float> expected;
  double batch = 0, steps = 0;
  double largest_weight = 1, largest_feature = 1;

  double of(int workers, double extra_roundings) const {
    const double u = std::ldexp(1.0, -24), lr = 0.1, features = 17;
    const double forward = 2 * (features * largest_weight * largest_feature + 4) * u;
    const double gradient = 2 * (batch + workers) * u * largest_feature + forward * largest_feature;
    return steps * (lr * gradient + (2 + extra_roundings) * u * largest_weight);
  }
};

// Around what the task gives in the run to compare with, which takes as many steps.
FloatBound bound_of(const Settings& task, const Settings& reference) {
  Trained run = trained(task + reference);
  Job job = load_job("", task);
  FloatBound bound{task, std::move(run.parameters), static_cast<double>(job.task.global_batch),
                   static_cast<double>(run.steps())};
  EXPECT_GT(bound.steps, 0);
  for (const float value : bound.expected)
    bound.largest_weight = std::max(bound.largest_weight, std::abs(double{value}));
  const Data data = load_data(job.task.data, job.task.seed, job.base_dir);
  Batch all;
  data.dataset->gather(data.splits.train, all);
  for (const float value : all.features)
    bound.largest_feature = std::max(bound.largest_feature, std::abs(double{value}));
  return bound;
}

void expect_within(const FloatBound& bound, const Settings& other, int workers,
                   double extra_roundings) {
  const std::vector<float> actual = parameters_after(bound.task + other);
  const double most = bound.of(workers, extra_roundings);
  ASSERT_EQ(actual.size(), bound.expected.size());
  for (size_t i = 0; i < actual.size(); ++i)
    ASSERT_LE(std::abs(double{actual[i]} - double{bound.expected[i]}), most)
        << other[0] << ", " << workers << " workers, parameter " << i;
}

TEST(EquivalenceFloat, StaysWithinTheDerivedBound) {
  const FloatBound bound = bound_of(logistic_task(), solo() + on("process", 1));
  for (const FloatVariant& variant : float_variants())
    for (const char* fabric : {"process", "virtual"})
      for (const int workers : {2, 3, 8})
        expect_within(bound, variant.settings + network_for(variant.settings, fabric, workers),
                      workers, variant.averages ? workers + 3 : 0);
}

// The last batch has one sample: all workers but one sum up nothing at all.
TEST(EquivalenceFloat, ALastBatchSmallerThanTheWorkersStaysWithinTheDerivedBound) {
  const FloatBound bound =
      bound_of(logistic_task() + Settings{"task.global_batch=97"}, solo() + on("process", 1));
  for (const char* topology : {"ring", "tree", "all_to_all", "direct"})
    for (const int workers : {2, 8})
      expect_within(bound,
                    Settings{"strategy.topology=" + std::string(topology)} + on("virtual", workers),
                    workers, 0);
  expect_within(bound, Settings{"strategy.topology=butterfly"} + on("process", 3), 3, 0);
}

// Sums over micro-batches and replicas are partial sums like any others.
TEST(EquivalenceFloat, PipelinesStayWithinTheDerivedBound) {
  const FloatBound bound = bound_of(logistic_task(), solo() + on("process", 1));
  for (const int replicas : {1, 2, 3})
    expect_within(bound,
                  Settings{"strategy.kind=pipeline", "strategy.micro_batches=4",
                           "strategy.replicas=" + std::to_string(replicas)} +
                      on("process", replicas),
                  4 * replicas, 0);
}

// Each shard has some of the four classes: the products are the same, and the sum of exponentials
// has a partial sum for each shard, rounded once more.
TEST(EquivalenceFloat, ShardsStayWithinTheDerivedBound) {
  const FloatBound bound = bound_of(logistic_task(), solo() + on("process", 1));
  for (const char* fabric : {"process", "virtual"}) {
    for (const int shards : {1, 2, 4})
      expect_within(bound, Settings{"strategy.kind=tensor"} + on(fabric, shards), shards + 1, 0);
    const Settings hybrid = {"strategy.kind=hybrid", "strategy.data=2", "strategy.shards=2",
                             "strategy.micro_batches=3"};
    expect_within(bound, hybrid + on(fabric, 4), 2 * 3 + 2 + 1, 0);
  }
}

// Clients own their samples, so the synchronous run to compare with is the one whose workers do:
// with all clients, equal shares and one local step, federated averaging is all-reduce on a
// disjoint partition, however few workers act for the clients. What a client sends is a difference
// that was rounded, the average is rounded, and so is the update.
TEST(EquivalenceFloat, FederatedAveragingOfAllClientsIsAllReduceOnTheirShares) {
  const Settings task =
      logistic_task() + Settings{"task.data.samples=500", "task.data.test=0.2",
                                 "task.data.validation=0.1",  // leaves 360 to train on
                                 "task.global_batch=24", "task.epochs=2"};
  for (const int clients : {2, 3, 8}) {
    const FloatBound bound =
        bound_of(task, Settings{"strategy.topology=ring", "task.partition=disjoint"} +
                           on("process", clients));
    const Settings federated = {"strategy.kind=federated_averaging", "strategy.local_steps=1",
                                "strategy.clients=" + std::to_string(clients)};
    expect_within(bound, federated + on("process", 2), clients, 4);
    expect_within(bound, federated + on("virtual", clients), clients, 4);
  }
}

}  // namespace
}  // namespace tutti
