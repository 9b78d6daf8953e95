// Who takes part in a comparison, and who computes the learning curve for whom.
#include "testbed/variants.h"

#include <gtest/gtest.h>

#include <map>

#include "core/error.h"
#include "testbed/comparison_plan.h"
#include "tests/support/jobs.h"

namespace tutti {
namespace {

using namespace testing_support;

Job virtual_job(const Settings& settings = {}) {
  return load_job(
      "", logistic_task() + Settings{"cluster.fabric=virtual", "cluster.workers=4"} + settings);
}

std::vector<std::string> names(const std::vector<ComparedJob>& compared) {
  std::vector<std::string> result;
  for (const ComparedJob& candidate : compared) result.push_back(candidate.job.name);
  return result;
}

std::string refusal(const Job& job, const std::vector<std::string>& strategies) {
  try {
    compared_jobs(job, strategies);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(ComparedJobs, AllIsEveryVariantOfTheCatalog) {
  const auto compared = compared_jobs(virtual_job(), {"all"});
  size_t variants = 0;
  for (const StrategyEntry& entry : strategy_catalog()) variants += entry.variants().size();
  EXPECT_EQ(compared.size(), variants) << "the job's own is one of them";
  for (const ComparedJob& candidate : compared) {
    const bool servers_may_take_machines = candidate.job.strategy_kind == "parameter_server";
    EXPECT_EQ(candidate.open.cluster.workers, candidate.job.strategy_kind == "solo"         ? 1
                                              : candidate.job.strategy_kind == "early_exit" ? 2
                                                                                            : 4);
    if (!servers_may_take_machines) {
      EXPECT_EQ(candidate.job.cluster.workers, candidate.open.cluster.workers);
    }
    // Shared memory, racks and layers to cut between are not there; that is said, and is no error.
    const bool possible = candidate.job.name != "direct" && candidate.job.name != "hierarchical" &&
                          candidate.job.name != "hogwild" &&
                          candidate.job.strategy_kind != "early_exit" &&
                          candidate.job.strategy_kind != "scheduled" &&
                          candidate.job.strategy_kind != "pipeline_servers" &&
                          (candidate.job.strategy_kind != "pipeline" ||
                           candidate.job.name == "pipeline-auto");  // that one makes copies
    EXPECT_EQ(candidate.refusal.empty(), possible) << candidate.job.name << candidate.refusal;
  }
}

// Energy and price are comparable only when all use the same machines. So servers and schedulers
// run on the workers' machines, or replace some workers.
TEST(ComparedJobs, UseTheMachinesOfTheClusterAndNoMore) {
  const Settings lasso = {"task.data.kind=synthetic-linear",
                          "task.model.kind=linear",
                          "task.model.l1=0.01",
                          "task.global_batch=37",
                          "cluster.fabric=virtual",
                          "cluster.workers=4"};
  size_t possible = 0, with_others = 0;
  for (const Job& task : {virtual_job(), load_job("", lasso)})
    for (const char* hosts : {"1", "2"})
      for (const ComparedJob& each : compared_jobs(
               with_settings(task, {"cluster.nodes_per_host=" + std::string(hosts)}), {"all"})) {
        if (!each.refusal.empty()) continue;
        const ClusterConfig& cluster = each.job.cluster;
        const auto nodes = std::ssize(each.plan.nodes);
        EXPECT_LE(hosts_of(cluster, nodes), 4 / std::stoi(hosts)) << each.job.name;
        ++possible;
        with_others += nodes > cluster.workers;
      }
  EXPECT_GT(possible, 40u);
  EXPECT_GT(with_others, 20u);
}

// With one server everything goes through its link. What people ask about by name stays that.
TEST(ComparedJobs, OfServersArePlanned) {
  size_t several = 0;
  for (ComparedJob& each : compared_jobs(
           virtual_job({"task.model.kind=mlp", "task.model.hidden=[512]", "task.global_batch=64"}),
           {"parameter_server"})) {
    const auto servers = std::ssize(each.plan.nodes) - each.job.cluster.workers;
    const bool planned = resolved_toml(each.open).find("servers = \"auto\"") != std::string::npos;
    EXPECT_EQ(planned, each.job.name != "ps-bsp-1") << each.job.name;
    if (each.job.name == "ps-bsp-1") {
      EXPECT_EQ(servers, 1);
    }
    several += servers > 1;
  }
  EXPECT_GT(several, 1u);
}

// An entry says itself where its servers run. A single server is a variant of its own.
TEST(ComparedJobs, OfAnEntryRunAsWritten) {
  Job job = virtual_job({"strategy.kind=parameter_server"});
  job.compare.push_back(with_settings(job, {"name=apart", "strategy.servers=3"}));
  const auto compared = compared_jobs(job, {"ps-bsp-1", "apart"});
  ASSERT_EQ(compared.size(), 2u);
  EXPECT_TRUE(compared[0].job.cluster.colocated);
  EXPECT_EQ(compared[0].job.cluster.workers, 4);
  EXPECT_FALSE(compared[1].job.cluster.colocated);
  EXPECT_EQ(hosts_of(compared[1].job.cluster, 7), 7);
}

// Four workers with a quarter of a model each have room where one with a copy has not.
TEST(ComparedJobs, MustFitTheMemoryOfANode) {
  const Job job = virtual_job({"task.model.kind=mlp", "task.model.hidden=[512, 512, 512]",
                               "task.global_batch=64", "cluster.memory=\"6 MB\""});
  const auto compared = compared_jobs(job, {"ring", "pipeline-1f1b"});
  ASSERT_EQ(compared.size(), 2u);
  EXPECT_NE(compared[0].refusal.find("more than cluster.memory = 6 MB"), std::string::npos)
      << compared[0].refusal;
  EXPECT_EQ(compared[1].refusal, "");
  for (const ComparedJob& each : compared_jobs(job, {"ring", "pipeline-1f1b"}, Memory::kMayBeShort))
    EXPECT_EQ(each.refusal, "");
}

TEST(ComparedJobs, KeepSettingsOfTheSameKind) {
  const auto compared = compared_jobs(virtual_job({"strategy.bucket=4096"}), {"tree"});
  ASSERT_EQ(compared.size(), 1u);
  Job job = compared[0].job;
  EXPECT_NE(resolved_toml(job).find("bucket = 4096"), std::string::npos);
  EXPECT_EQ(variant_name(job), "tree");
}

// Advice hands on one of them as the job; a comparison then shows the others as they were judged.
TEST(ComparedJobs, AreTheSameWhicheverOfThemTheJobIs) {
  std::map<std::string, Job> from_none;
  for (const ComparedJob& candidate : compared_jobs(virtual_job(), {"all"}))
    from_none.emplace(candidate.open.name, candidate.open);
  for (const auto& [own, job] : from_none) {
    // Those of a pipeline differ by schedule or by stages, and share what the job says of the
    // other.
    if (job.strategy_kind == "pipeline") continue;
    for (const ComparedJob& candidate : compared_jobs(job, {job.strategy_kind, "solo"}))
      EXPECT_EQ(strategy_settings(candidate.open),
                strategy_settings(from_none.at(candidate.open.name)))
          << candidate.open.name << " where the job is " << own;
  }
}

TEST(ComparedJobs, AreChosenByNameKindOrEntry) {
  Job job = virtual_job();
  job.compare.push_back(with_settings(job, {"name=fast", "optimizer.lr=1"}));
  EXPECT_EQ(names(compared_jobs(job, {"tree", "solo"})),
            (std::vector<std::string>{"solo", "tree"}));
  EXPECT_EQ(names(compared_jobs(job, {"fast"})), (std::vector<std::string>{"fast"}));
  EXPECT_EQ(names(compared_jobs(job, {"listed", "ring"})),
            (std::vector<std::string>{"ring", "fast"}));
  EXPECT_EQ(compared_jobs(job, {"allreduce"}).size(), 7u);
  EXPECT_EQ(names(compared_jobs(job, {"all"})).back(), "fast");
}

// An entry that is named like a variant has the settings by which that one is compared.
TEST(ComparedJobs, AnEntryOfTheSameNameSetsAVariant) {
  Job job = virtual_job({"optimizer.lr=0.1"});
  job.compare.push_back(with_settings(job, {"name=gossip-ring", "optimizer.lr=0.02"}));
  job.compare.push_back(with_settings(job, {"name=ring", "optimizer.lr=0.3"}));
  size_t plain = 0;
  for (const ComparedJob& each : compared_jobs(job, {"all"})) {
    EXPECT_NE(each.job.name, "job") << "the job's own strategy is ring, at whichever rate";
    const std::string& name = each.job.name;
    EXPECT_EQ(each.job.optimizer.lr, name == "gossip-ring" ? 0.02
                                     : name == "ring"      ? 0.3
                                                           : 0.1)
        << name;
    EXPECT_TRUE(name != "gossip-ring" || each.job.strategy_kind == "gossip");
    ++plain;
  }
  EXPECT_EQ(plain, compared_jobs(virtual_job(), {"all"}).size()) << "nobody is added";
  EXPECT_EQ(names(compared_jobs(job, {"gossip", "solo"})).size(),
            names(compared_jobs(virtual_job(), {"gossip", "solo"})).size())
      << "it is also one of its kind";
}

TEST(ComparedJobs, UnknownNamesAreRefusedWithTheNearest) {
  const Job job = virtual_job();
  EXPECT_TRUE(refusal(job, {"buterfly"}).find("did you mean 'butterfly'?") != std::string::npos)
      << refusal(job, {"buterfly"});
  EXPECT_NE(refusal(job, {"listed"}), "accepted");
  Job twice = job;
  twice.compare.push_back(with_settings(job, {"name=ring", "strategy.topology=tree"}));
  EXPECT_TRUE(refusal(twice, {"all"}).find("choose another name") != std::string::npos);
  EXPECT_TRUE(refusal(job, {"direct"}).starts_with("nothing is left to compare"));
  EXPECT_TRUE(refusal(virtual_job({"task.global_batch=2"}), {"ring", "tree"})
                  .find("task.global_batch = 2") != std::string::npos);
}

std::map<std::string, std::string> leaders(const std::vector<PlannedRun>& plan) {
  std::map<std::string, std::string> result;
  for (size_t i = 0; i < plan.size(); ++i) {
    if (plan[i].leader) {
      EXPECT_LT(*plan[i].leader, i);
    }
    result[plan[i].name] = plan[i].leader ? plan[*plan[i].leader].name : "";
  }
  return result;
}

TEST(Plan, TheCheapestMemberOfAClassLeads) {
  const auto compared = compared_jobs(virtual_job(), {"ring", "solo", "tree"});
  EXPECT_EQ(leaders(plan_runs(compared, {1, 7}, true)),
            (std::map<std::string, std::string>{{"solo-seed1", ""},
                                                {"ring-seed1", "solo-seed1"},
                                                {"tree-seed1", "solo-seed1"},
                                                {"solo-seed7", ""},
                                                {"ring-seed7", "solo-seed7"},
                                                {"tree-seed7", "solo-seed7"}}));
  for (const auto& [name, leader] : leaders(plan_runs(compared, {1}, false)))
    EXPECT_EQ(leader, "") << name;
  EXPECT_EQ(leaders(plan_runs(compared_jobs(virtual_job(), {"ring", "tree"}), {1}, true)),
            (std::map<std::string, std::string>{{"ring-seed1", ""}, {"tree-seed1", "ring-seed1"}}));
}

// Another optimizer is another curve, a real machine measures for itself, and where the batches
// depend on the workers nothing is equal.
TEST(Plan, OnlyEqualsShare) {
  Job job = virtual_job();
  job.compare.push_back(with_settings(job, {"name=fast", "optimizer.lr=1"}));
  job.compare.push_back(
      with_settings(job, {"name=real", "cluster.fabric=process", "cluster.workers=2"}));
  auto plan = plan_runs(compared_jobs(job, {"ring", "tree", "listed"}), {1}, true);
  EXPECT_EQ(plan.front().name, "real-seed1") << "what measures comes first";
  EXPECT_EQ(leaders(plan), (std::map<std::string, std::string>{{"ring-seed1", ""},
                                                               {"tree-seed1", "ring-seed1"},
                                                               {"fast-seed1", ""},
                                                               {"real-seed1", ""}}));
  plan = plan_runs(compared_jobs(virtual_job({"task.partition=disjoint"}), {"ring", "tree"}), {1},
                   true);
  for (const auto& [name, leader] : leaders(plan)) EXPECT_EQ(leader, "") << name;
  EXPECT_EQ(follower_job(plan[0].job, 12).task.max_steps, 12);
  EXPECT_EQ(follower_job(plan[0].job, 0).task.max_steps, 1);
  EXPECT_TRUE(follower_job(plan[0].job, 12).cluster.cost_only);
}

}  // namespace
}  // namespace tutti
