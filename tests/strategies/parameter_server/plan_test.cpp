// Compares what servers = "auto" chooses with simulations of every other choice.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/error.h"
#include "strategies/parameter_server/planner.h"
#include "tests/support/jobs.h"

namespace tutti {
namespace {

using namespace testing_support;

// The cluster and the model of recipes/demo.toml: 1.7 MB of parameters, nearly all in one layer.
Settings demo(const std::string& consistency) {
  return {"task.data.kind=fashion-mnist",
          "task.data.limit=2000",
          "task.model.kind=lenet",
          "task.global_batch=128",
          "task.epochs=100",
          "task.eval_every=1000",
          "optimizer.kind=nesterov",
          "strategy.kind=parameter_server",
          "cluster.fabric=virtual",
          "cluster.workers=8",
          "cluster.racks=2",
          "cluster.bandwidth=\"1 Gbit/s\"",
          "cluster.latency=\"50 us\"",
          "cluster.speed=\"20 GFLOP/s\"",
          "cluster.cost_only=true",
          "strategy.consistency=" + consistency};
}

double step_s(const Settings& settings, const Data& data) {
  const auto total_s = [&](int steps) {
    Job job = load_job("", settings + Settings{"task.max_steps=" + std::to_string(steps)});
    const std::atomic<bool> never{false};
    const RunRecord record =
        launch(resolve(job, data),
               {.out = "", .keep_files = false, .progress = ProgressStyle::kNone}, never);
    EXPECT_EQ(record.status, "done") << record.error;
    double most = 0;
    for (const NodeReport& node : record.nodes) most = std::max(most, node.total_s);
    return most;
  };
  return (total_s(20) - total_s(8)) / 12;
}

void expect_best(const Settings& task, double tolerance) {
  const Data data = resolve(load_job("", task)).data;
  const double chosen_s = step_s(task + Settings{"strategy.servers=auto"}, data);
  for (const int servers : {1, 2, 4, 8})
    for (const bool colocated : {true, false}) {
      if (!colocated && servers == 8) continue;  // no machine is left
      const Settings fixed = {"strategy.servers=" + std::to_string(servers),
                              "cluster.workers=" + std::to_string(colocated ? 8 : 8 - servers),
                              std::string("cluster.colocated=") + (colocated ? "true" : "false")};
      EXPECT_LE(chosen_s, tolerance * step_s(task + fixed, data))
          << servers << (colocated ? " with workers" : " apart");
    }
}

TEST(ServerPlan, IsFastestOfAllOnTheMachinesOfTheDemo) { expect_best(demo("bsp"), 1.02); }
TEST(ServerPlan, IsFastestOfAllWithoutABarrierToo) { expect_best(demo("asp"), 1.05); }

// Slow machines hold up a barrier as workers; as servers they do not.
TEST(ServerPlan, PutsServersOnTheSlowMachines) {
  const Settings slow = {"cluster.racks=1",
                         "cluster.speed_factors=[1, 1, 1, 1, 0.2, 0.2, 0.2, 0.2]",
                         "cluster.stragglers=[{ kind = \"constant\", node = 5, factor = 3 }]"};
  Job job = load_job("", demo("bsp") + slow + Settings{"strategy.servers=auto"});
  job = resolve(job).job;
  EXPECT_FALSE(job.cluster.colocated);
  EXPECT_EQ(job.cluster.workers, 4);
  EXPECT_EQ(job.cluster.speed_factors.size(), 4u);
  EXPECT_EQ(job.cluster.stragglers.size(), 1u) << "a server may straggle, too";
  EXPECT_EQ(hosts_of(job.cluster, std::ssize(resolve(job).plan.roles())), 8);
}

// The estimate cannot tell apart plans whose steps differ by less than a hundredth. Fewest servers
// then come first, because each costs memory and messages.
TEST(ServerPlan, HasTheFewestServersOfThoseThatAreAsFast) {
  size_t decided = 0;
  for (const char* consistency : {"bsp", "asp"})
    for (const char* latency : {"50 us", "5 ms"}) {
      Job job = load_job(
          "", demo(consistency) + Settings{"strategy.servers=auto",
                                           "task.model={kind=\"mlp\", hidden=[8]}",
                                           fmt::format("cluster.latency=\"{}\"", latency)});
      const Resolved resolved = resolve(job);
      parameter_server::Config config;
      config.consistency = value_of(consistency, config.consistency);
      config.automatic = true;
      const auto plans = parameter_server::server_plans(
          config,
          {job.task, job.cluster, job.optimizer, resolved.architecture, sizes_of(resolved.data)});
      const auto fastest = std::min_element(plans.begin(), plans.end(), [](auto& a, auto& b) {
        return a.step_s != b.step_s ? a.step_s < b.step_s : a.servers < b.servers;
      });
      EXPECT_LE(plans.front().step_s, 1.01 * fastest->step_s);
      for (const parameter_server::ServerPlan& each : plans)
        if (each.step_s <= 1.01 * fastest->step_s) {
          EXPECT_GE(each.servers, plans.front().servers) << consistency << " " << latency;
        }
      decided += fastest->servers > plans.front().servers;
    }
  EXPECT_GT(decided, 0u) << "the rule never made a difference";
}

std::vector<std::string> explained(const Settings& settings, Job& job) {
  job = load_job("", settings);
  const Resolved resolved = resolve(job);
  job = resolved.job;
  return resolved.plan.reasons;
}

TEST(ServerPlan, IsExplainedAndThenWrittenDown) {
  Job job;
  const auto lines = explained(demo("bsp") + Settings{"strategy.servers=auto"}, job);
  EXPECT_EQ(lines[0].find("8 servers, on the workers' machines, 8 workers: about"), 0u) << lines[0];
  EXPECT_EQ(lines[1].find("considered "), 0u) << lines[1];
  EXPECT_NE(resolved_toml(job).find("servers = 8\n"), std::string::npos);
  EXPECT_NE(resolved_toml(job).find("colocated = true\n"), std::string::npos);
}

// The links of processes are unknown, norms need the whole gradient, and copies need other servers.
TEST(ServerPlan, KeepsToWhatTheRestOfTheJobAllows) {
  const auto servers = [](const Settings& more) {
    Job job;
    explained(logistic_task() +
                  Settings{"strategy.kind=parameter_server", "cluster.workers=4",
                           "strategy.servers=auto"} +
                  more,
              job);
    return resolve(job).plan.roles().size() - static_cast<size_t>(job.cluster.workers);
  };
  EXPECT_EQ(servers({}), 1u);
  EXPECT_EQ(servers({"strategy.replicas=2"}), 3u);
  EXPECT_EQ(servers({"cluster.fabric=virtual", "optimizer.clip_norm=1"}), 1u);
  EXPECT_GE(servers({"cluster.fabric=virtual", "strategy.replicas=2"}), 3u);
  const RunRecord real =
      run(logistic_task() +
          Settings{"strategy.kind=parameter_server", "cluster.workers=2", "strategy.servers=auto"});
  EXPECT_EQ(real.status, "done") << real.error;
  EXPECT_EQ(real.plan, "1 server, on this machine");
}

// Clipping needs the whole gradient on one server, copies need a second one: no plan is left.
TEST(ServerPlan, ThatCannotBeIsRefusedAndNotLookedFor) {
  for (const char* fabric : {"virtual", "process"}) {
    Job job = load_job("", demo("bsp") + Settings{"cluster.cost_only=false", "cluster.workers=4",
                                                  "strategy.servers=\"auto\"",
                                                  "strategy.replicas=1", "optimizer.clip_norm=1"});
    job.cluster.fabric = value_of(fabric, job.cluster.fabric);
    try {
      resolve(job);
      ADD_FAILURE() << fabric << ": it was accepted";
    } catch (const ConfigError& error) {
      EXPECT_NE(std::string(error.what()).find("strategy.replicas"), std::string::npos)
          << error.what();
    }
  }
}

// What is planned for the busiest node is what it sends in a step, also where servers hold copies
// and several shards each. Control messages beside a step and cuts that are not even are below 2 %.
TEST(ServerPlan, KnowsWhatCopiesSend) {
  for (const char* consistency : {"bsp", "asp"})
    for (const char* shards : {"1", "2", "3"}) {
      const auto settings_of = [&](int steps) {
        return logistic_task() +
               Settings{"task.data.features=20000", "task.eval_every=1000", "task.epochs=100",
                        "strategy.kind=parameter_server", "strategy.servers=3",
                        "strategy.replicas=1", "cluster.fabric=virtual", "cluster.workers=4",
                        "cluster.cost_only=true",
                        std::string("strategy.consistency=") + consistency,
                        std::string("strategy.shards_per_server=") + shards,
                        "task.max_steps=" + std::to_string(steps)};
      };
      const RunRecord shorter = run(settings_of(4)), longer = run(settings_of(24));
      ASSERT_EQ(longer.status, "done") << longer.error;
      double bytes = 0, messages = 0;
      for (size_t i = 0; i < longer.nodes.size(); ++i) {
        const NodeReport &after = longer.nodes[i], &before = shorter.nodes[i];
        bytes = std::max(bytes, static_cast<double>(after.bytes_sent - before.bytes_sent) / 20);
        messages = std::max(messages, static_cast<double>(after.messages - before.messages) / 20);
      }
      const Plan plan = resolve(load_job("", settings_of(24))).plan;
      const NodePlan& busiest = plan.busiest();
      EXPECT_NEAR(busiest.bytes_sent, bytes, 0.02 * bytes) << consistency << " " << shards;
      EXPECT_NEAR(busiest.messages, messages, 0.02 * messages) << consistency << " " << shards;
    }
}

}  // namespace
}  // namespace tutti
