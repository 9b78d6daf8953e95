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

// The seconds that a thousand samples take, of those that count.
double thousand_s(const Settings& settings, const Data& data) {
  struct Total {
    double seconds = 0, samples = 0;
  };
  const auto total = [&](int steps) {
    Job job = load_job("", settings + Settings{"task.max_steps=" + std::to_string(steps)});
    const std::atomic<bool> never{false};
    const RunRecord record =
        launch(resolve(job, data),
               {.out = "", .keep_files = false, .progress = ProgressStyle::kNone}, never);
    EXPECT_EQ(record.status, RunStatus::kDone) << record.error;
    Total most;
    for (const NodeReport& node : record.nodes) {
      most.seconds = std::max(most.seconds, node.total_s);
      most.samples = std::max(most.samples, static_cast<double>(node.samples));
    }
    return most;
  };
  const Total shorter = total(8), longer = total(20);
  return 1000 * (longer.seconds - shorter.seconds) / (longer.samples - shorter.samples);
}

void expect_best(const Settings& task, double tolerance) {
  const Data data = resolve(load_job("", task)).data;
  const auto machines = static_cast<int>(load_job("", task).cluster.workers);
  const double chosen_s = thousand_s(task + Settings{"strategy.servers=auto"}, data);
  for (int servers = 1; servers <= machines; servers *= 2)
    for (const bool colocated : {true, false}) {
      const int workers = colocated ? machines : machines - servers;
      if (workers < 1) continue;  // no machine is left
      const Settings fixed = {"strategy.servers=" + std::to_string(servers),
                              "cluster.workers=" + std::to_string(workers),
                              std::string("cluster.colocated=") + (colocated ? "true" : "false")};
      EXPECT_LE(chosen_s, tolerance * thousand_s(task + fixed, data))
          << servers << (colocated ? " with workers" : " apart");
    }
}

TEST(ServerPlan, IsFastestOfAllOnTheMachinesOfTheDemo) { expect_best(demo("bsp"), 1.02); }
TEST(ServerPlan, IsFastestOfAllWithoutABarrierToo) { expect_best(demo("asp"), 1.05); }

// Whoever comes last has computed for nothing: of two workers it is half of all work, of four a
// quarter. So the time of a batch is not that of a step. The estimate leaves out that late
// gradients fill the links, too, which is up to a quarter; taking steps for batches is wrong by a
// third to half.
TEST(ServerPlan, CountsWhatBackupThrowsAway) {
  const Settings task =
      demo("backup") + Settings{"strategy.backup=1", "cluster.workers=4", "cluster.racks=1"};
  const Resolved resolved = resolve(load_job("", task + Settings{"strategy.servers=auto"}));
  const Job job = load_job("", task);
  parameter_server::Config config;
  config.consistency = parameter_server::ConsistencyKind::kBackup;
  config.automatic = true;
  const auto plans = parameter_server::server_plans(
      config,
      {job.task, job.cluster, job.optimizer, resolved.architecture, sizes_of(resolved.data)});
  for (const parameter_server::ServerPlan& plan : plans) {
    const Settings fixed = {
        "strategy.servers=" + std::to_string(plan.servers),
        "cluster.workers=" + std::to_string(plan.workers),
        std::string("cluster.colocated=") + (plan.colocated ? "true" : "false")};
    const double batch_s = 0.128 * thousand_s(task + fixed, resolved.data);
    EXPECT_NEAR(plan.step_s, batch_s, 0.25 * batch_s)
        << plan.servers << " servers, " << plan.workers << " workers";
  }
}

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
  EXPECT_EQ(real.status, RunStatus::kDone) << real.error;
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

// What is planned for the busiest node, and for the busiest worker, is what they send in a step.
// Control messages beside a step and cuts that are not even are below 2 %.
void expect_sent_as_planned(const Settings& more) {
  const auto settings_of = [&](int steps) {
    return logistic_task() +
           Settings{"task.data.features=20000",
                    "task.eval_every=1000",
                    "task.epochs=100",
                    "strategy.kind=parameter_server",
                    "strategy.servers=3",
                    "cluster.fabric=virtual",
                    "cluster.workers=4",
                    "cluster.cost_only=true",
                    "task.max_steps=" + std::to_string(steps)} +
           more;
  };
  const RunRecord shorter = run(settings_of(4)), longer = run(settings_of(24));
  ASSERT_EQ(longer.status, RunStatus::kDone) << longer.error;
  const Plan plan = resolve(load_job("", settings_of(24))).plan;
  struct Sent {
    double bytes = 0, messages = 0;
  };
  Sent sent, planned, sent_by_workers, planned_for_workers;
  const auto raise = [](Sent& most, double bytes, double messages) {
    most = {std::max(most.bytes, bytes), std::max(most.messages, messages)};
  };
  for (size_t i = 0; i < longer.nodes.size(); ++i) {
    const NodeReport &after = longer.nodes[i], &before = shorter.nodes[i];
    const double bytes = static_cast<double>(after.bytes_sent - before.bytes_sent) / 20;
    const double messages = static_cast<double>(after.messages - before.messages) / 20;
    raise(sent, bytes, messages);
    raise(planned, plan.nodes[i].bytes_sent, plan.nodes[i].messages);
    if (plan.nodes[i].role != "worker") continue;
    raise(sent_by_workers, bytes, messages);
    raise(planned_for_workers, plan.nodes[i].bytes_sent, plan.nodes[i].messages);
  }
  EXPECT_NEAR(planned.bytes, sent.bytes, 0.02 * sent.bytes);
  EXPECT_NEAR(planned.messages, sent.messages, 0.02 * sent.messages);
  EXPECT_NEAR(planned_for_workers.bytes, sent_by_workers.bytes, 0.02 * sent_by_workers.bytes);
  EXPECT_NEAR(planned_for_workers.messages, sent_by_workers.messages,
              0.02 * sent_by_workers.messages);
}

TEST(ServerPlan, KnowsWhatCopiesSend) {
  for (const char* consistency : {"bsp", "asp"})
    for (const char* shards : {"1", "2", "3"}) {
      SCOPED_TRACE(fmt::format("{} with {} shards a server", consistency, shards));
      expect_sent_as_planned({"strategy.replicas=1",
                              std::string("strategy.consistency=") + consistency,
                              std::string("strategy.shards_per_server=") + shards});
    }
}

TEST(ServerPlan, KnowsWhatIsAskedAhead) {
  for (const char* prefetch : {"true", "false"}) {
    SCOPED_TRACE(prefetch);
    expect_sent_as_planned(
        {"strategy.consistency=asp", std::string("strategy.prefetch=") + prefetch});
  }
}

}  // namespace
}  // namespace tutti
