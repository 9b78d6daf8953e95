// The plans of all strategies: the same whenever they are made, complete, and made without samples.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "jobs/plan_difference.h"
#include "testbed/variants.h"
#include "tests/support/jobs.h"

namespace tutti {
namespace {

using namespace testing_support;

// A model with layers to cut, and one for coordinate descent: each strategy can train one of them.
std::vector<Job> planned_tasks() {
  const Settings cluster = {"cluster.fabric=virtual", "cluster.workers=4", "cluster.racks=2"};
  return {load_job("", small_mlp("[64, 64, 64, 64]") + cluster),
          load_job("", Settings{"task.data.kind=synthetic-linear", "task.model.kind=linear",
                                "task.model.l1=0.01", "task.global_batch=37"} +
                           cluster)};
}

template <class Visit>
void for_each_plan(const Visit& visit) {
  size_t planned = 0;
  for (const Job& task : planned_tasks())
    for (const ComparedJob& each : compared_jobs(task, {"all"})) {
      if (!each.refusal.empty()) continue;
      SCOPED_TRACE(each.job.name);
      visit(each);
      ++planned;
    }
  EXPECT_GT(planned, strategy_catalog().size());
}

// What the planner decided is written into the job, so that planning again finds nothing open and
// decides the same.
TEST(Plans, AreTheSameWheneverTheyAreMade) {
  for_each_plan([](const ComparedJob& each) {
    const Resolved once = resolve(each.open);
    EXPECT_EQ(once.plan, resolve(each.open).plan);
    const Plan again = resolve(once.job).plan;
    EXPECT_EQ(again.nodes, once.plan.nodes);
    EXPECT_EQ(again.facts, once.plan.facts);
    EXPECT_EQ(again.steps, once.plan.steps);
    EXPECT_TRUE(again.decided.empty()) << again.decided[0];
  });
}

TEST(Plans, SayEverythingOfEveryNode) {
  for_each_plan([](const ComparedJob& each) {
    const Resolved resolved = resolve(each.job);
    const Plan& plan = resolved.plan;
    ASSERT_GE(std::ssize(plan.nodes), plan.workers);
    EXPECT_EQ(plan.workers, each.job.cluster.workers);
    EXPECT_GT(plan.steps, 0);
    for (const NodePlan& node : plan.nodes) {
      EXPECT_FALSE(node.role.empty());
      EXPECT_GT(node.memory_bytes, 0) << node.role;
      EXPECT_EQ(node.messages > 0, node.bytes_sent > 0) << node.role;
    }
    for (const std::string_view word :
         {plan.taxonomy.structure, plan.taxonomy.parallelism, plan.taxonomy.optimisation,
          word_of(plan.taxonomy.timing), plan.taxonomy.pattern, plan.taxonomy.data,
          plan.taxonomy.stragglers, plan.taxonomy.communication, plan.taxonomy.computation})
      EXPECT_FALSE(word.empty());
    // Somebody has each layer, unless nodes share layers among them.
    std::vector<bool> held(resolved.architecture.layers.size());
    bool shared = false;
    for (Rank rank = 0; rank < plan.workers; ++rank) {
      const NodePlan& node = plan.nodes[static_cast<size_t>(rank)];
      shared = shared || (node.layers.empty() && node.role == "worker");
      for (const Range range : node.layers)
        for (size_t layer = range.begin; layer < range.end; ++layer) held.at(layer) = true;
    }
    if (!shared) {
      EXPECT_EQ(std::count(held.begin(), held.end(), false), 0);
    }
  });
}

// A launcher that may not read the samples of others can plan all the same.
TEST(Plans, NeedSizesOfTheDataAndNoSamples) {
  for_each_plan([](const ComparedJob& each) {
    const Resolved resolved = resolve(each.job);
    const Job& job = resolved.job;
    const DataSizes known = sizes_of(resolved.data);
    DataSizes told;
    told.counted = true;
    told.train = known.train;
    told.validation = known.validation;
    told.test = known.test;
    told.sample_shape = known.sample_shape;
    told.classes = known.classes;
    const Architecture model = make_architecture(job.task.model, told.sample_shape, told.classes);
    EXPECT_EQ(job.strategy->plan({job.task, job.cluster, job.optimizer, model, told}),
              resolved.plan);
  });
}

TEST(PlanChanges, AreSaidInWords) {
  const Job ring = planned_tasks()[0];
  const auto changes = [&](const Settings& more) {
    std::map<std::string, std::string> texts;
    for (const PlanChange& change : plan_changes(resolve(ring), resolve(with_settings(ring, more))))
      texts[change.about] = change.text;
    return texts;
  };
  EXPECT_EQ(changes({}),
            (std::map<std::string, std::string>{{"learning", "both compute the same parameters"}}));
  auto servers = changes({"strategy={kind=\"parameter_server\", servers=2}"});
  EXPECT_EQ(servers["roles"], "4 workers -> 4 workers, 2 servers");
  EXPECT_EQ(servers["structure"], "peer-to-peer -> client-server");
  EXPECT_EQ(servers["risk"],
            "the loss of any node ends the run -> the loss of rank 4 to 5 ends the run, that of "
            "others does not");
  EXPECT_EQ(servers["learning"], "both compute the same parameters");
  auto local = changes({"strategy={kind=\"local_sgd\", sync_every=16}"});
  EXPECT_EQ(local["learning"], "they need not learn alike: compare both to know");
  EXPECT_NE(local["sent in a step by the busiest node"].find("(16 times less)"), std::string::npos)
      << local["sent in a step by the busiest node"];
  auto rate = changes({"optimizer.lr=0.007", "cluster.bandwidth=\"2 Gbit/s\""});
  EXPECT_NE(rate["settings"].find("optimizer.lr 0.1 -> 0.007"), std::string::npos)
      << rate["settings"];
  EXPECT_NE(rate["settings"].find("cluster.bandwidth"), std::string::npos) << rate["settings"];
  EXPECT_EQ(rate["learning"], "the task or its rates differ, so they learn differently");
  EXPECT_EQ(changes({"task.target=0.5"})["learning"], "both compute the same parameters");
  EXPECT_EQ(changes({"cluster.latency=\"1 ms\""})["learning"], "both compute the same parameters");
  EXPECT_EQ(changes({"task.epochs=3"})["steps"].find(" -> ") != std::string::npos, true);
}

}  // namespace
}  // namespace tutti
