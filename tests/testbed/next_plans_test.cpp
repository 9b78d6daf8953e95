// The plan after nodes have left or come is that of the same job, written for the nodes that are
// there.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "core/random.h"
#include "jobs/plan_difference.h"
#include "testbed/variants.h"
#include "tests/support/jobs.h"
#include "tests/support/thorough.h"

namespace tutti {
namespace {

using namespace testing_support;

constexpr int64_t kWorkers = 6;

// Every worker differs from every other.
std::vector<Job> uneven_tasks() {
  const Settings cluster = {
      "cluster.fabric=virtual",
      fmt::format("cluster.workers={}", kWorkers),
      "cluster.racks=2",
      "cluster.speed_factors=[1, 0.9, 0.8, 0.7, 0.6, 0.5]",
      "cluster.memory_factors=[1, 1.1, 1.2, 1.3, 1.4, 1.5]",
      "cluster.stragglers=[{kind=\"constant\", node=1, factor=2}, {kind=\"constant\", node=4, "
      "factor=3}]"};
  return {load_job("", small_mlp("[64, 64, 64, 64]") + cluster),
          load_job("", Settings{"task.data.kind=synthetic-linear", "task.model.kind=linear",
                                "task.model.l1=0.01", "task.global_batch=37"} +
                           cluster)};
}

// Without places: messages of two jobs then differ in what matters.
Job unplaced(Job job) {
  job.places.clear();
  return job;
}

std::vector<Resolved> all_plans() {
  std::vector<Resolved> plans;
  for (const Job& task : uneven_tasks())
    for (const ComparedJob& each : compared_jobs(task, {"all"}))
      if (each.refusal.empty()) plans.push_back(resolve(unplaced(each.open)));
  return plans;
}

MembershipChange drawn_change(const Plan& plan, Random& random) {
  MembershipChange change;
  const double share = random.uniform();
  for (Rank rank = 0; rank < std::ssize(plan.nodes); ++rank)
    if (random.uniform() < share) change.leave.push_back(rank);
  if (random.uniform() < 0.3) change.come = 1 + static_cast<int64_t>(random.below(2));
  return change;
}

std::string list_of(const std::vector<double>& before, const MembershipChange& change) {
  std::vector<double> kept;
  for (size_t rank = 0; rank < before.size(); ++rank)
    if (!change.leaves(static_cast<Rank>(rank))) kept.push_back(before[rank]);
  kept.resize(kept.size() + static_cast<size_t>(change.come), 1);
  return fmt::format("[{}]", fmt::join(kept, ", "));
}

// The settings of [cluster] that somebody would write for these nodes.
Settings cluster_written_for(const Plan& plan, const MembershipChange& change) {
  const ClusterConfig& before = plan.cluster;
  std::set<int64_t> racks;
  int64_t next = 0, workers = 0;
  std::string stragglers;
  for (Rank rank = 0; rank < std::ssize(plan.nodes); ++rank) {
    const bool works = rank < before.workers;
    if (rank == before.workers) next += change.come;
    if (change.leaves(rank)) continue;
    workers += works;
    if (works) racks.insert(rack_of(before, rank));
    for (const StragglerConfig& each : before.stragglers)
      if (each.node == rank)
        stragglers += fmt::format("{{kind=\"constant\", node={}, factor={}}},", next, each.factor);
    ++next;
  }
  return {fmt::format("cluster.workers={}", workers + change.come),
          fmt::format("cluster.colocated={}", before.colocated),
          fmt::format("cluster.racks={}", std::max<size_t>(1, racks.size())),
          "cluster.speed_factors=" + list_of(before.speed_factors, change),
          "cluster.memory_factors=" + list_of(before.memory_factors, change),
          fmt::format("cluster.stragglers=[{}]", stragglers)};
}

int64_t left_of(const Plan& plan, const std::string& role, const MembershipChange& change) {
  int64_t count = 0;
  for (Rank rank = 0; rank < std::ssize(plan.nodes); ++rank)
    count += plan.nodes[static_cast<size_t>(rank)].role == role && !change.leaves(rank);
  return count;
}

struct Outcome {
  std::optional<Resolved> resolved;
  std::string refusal = {};
};

template <class Resolve>
Outcome outcome_of(const Resolve& make) {
  try {
    return {.resolved = make()};
  } catch (const ConfigError& error) {
    return {.resolved = {}, .refusal = error.what()};
  }
}

const std::map<std::string, std::string> kRoleSettings = {{"server", "servers"},
                                                          {"device", "devices"}};

bool has_setting(const Resolved& resolved, const std::string& setting) {
  return strategy_settings(resolved.job).find("\"" + setting + "\"") != std::string::npos;
}

Job written_for(const Resolved& former, const MembershipChange& change) {
  Settings settings = cluster_written_for(former.plan, change);
  for (const auto& [role, setting] : kRoleSettings)
    if (has_setting(former, setting))
      settings.push_back(
          fmt::format("strategy.{}={}", setting, left_of(former.plan, role, change)));
  return unplaced(with_settings(former.open, settings));
}

// Whether a worker is there and everybody without whom no job can be written.
bool keeps_who_is_needed(const Resolved& former, const MembershipChange& change) {
  bool someone = change.come > 0;
  for (Rank rank = 0; rank < former.plan.workers; ++rank) someone |= !change.leaves(rank);
  for (const auto& [role, setting] : kRoleSettings)
    if (has_setting(former, setting))
      someone = someone && left_of(former.plan, role, change) > 0;
    else  // there are as many as the strategy needs, if any
      someone = someone && left_of(former.plan, role, change) == left_of(former.plan, role, {});
  return someone &&
         left_of(former.plan, "scheduler", change) == left_of(former.plan, "scheduler", {});
}

TEST(NextPlans, AreThoseOfJobsThatAreWrittenForTheNodes) {
  Random random(20, Stream::kTest);
  size_t refused = 0;
  std::set<std::string> asked, planned;
  for (const Resolved& former : all_plans()) {
    asked.insert(former.job.strategy_kind);
    for (uint64_t draw = 0; draw < seeds(12, 100); ++draw) {
      const MembershipChange change = drawn_change(former.plan, random);
      SCOPED_TRACE(fmt::format("{}, {}", former.job.name, in_words(change)));
      const Outcome next = outcome_of([&] { return resolve(former, change); });
      if (!keeps_who_is_needed(former, change)) {
        EXPECT_NE(next.refusal.find(" must stay"), std::string::npos) << next.refusal;
        continue;
      }
      const Outcome written =
          outcome_of([&] { return resolve(written_for(former, change), former.data); });
      ASSERT_EQ(next.resolved.has_value(), written.resolved.has_value())
          << next.refusal << " / " << written.refusal;
      if (!written.resolved) {  // and for the same reason
        const std::string reason = written.refusal.substr(written.refusal.size() / 2);
        EXPECT_TRUE(next.refusal.ends_with(reason)) << next.refusal << " / " << written.refusal;
        ++refused;
        continue;
      }
      Plan plan = next.resolved->plan;
      EXPECT_EQ(plan.epoch, 1u);
      plan.epoch = 0;
      EXPECT_EQ(plan, written.resolved->plan);
      EXPECT_EQ(std::ssize(plan.nodes),
                std::ssize(former.plan.nodes) - std::ssize(change.leave) + change.come);
      EXPECT_EQ(resolved_toml(next.resolved->job), resolved_toml(written.resolved->job));
      planned.insert(former.job.strategy_kind);
    }
  }
  EXPECT_EQ(planned, asked);
  EXPECT_GT(asked.size(), 10u);
  EXPECT_GT(refused, 0u);
}

TEST(NextPlans, FollowEachOther) {
  for (const Resolved& first : all_plans()) {
    if (first.job.strategy_kind != "allreduce") continue;
    const Resolved second = resolve(first, {.leave = {1}});
    const Resolved third = resolve(second, {.leave = {0}, .come = 2});
    EXPECT_EQ(third.plan.epoch, 2u);
    Resolved once = resolve(first, {.leave = {0, 1}, .come = 2});
    once.plan.epoch = 2;
    EXPECT_EQ(third.plan, once.plan);
  }
}

std::string refusal_of(const Settings& settings, const MembershipChange& change) {
  const Resolved former = resolve(with_settings(uneven_tasks()[0], settings));
  try {
    resolve(former, change);
  } catch (const ConfigError& error) {
    return error.key() + ": " + error.what();
  }
  return "";
}

void expect_refused(const Settings& settings, const MembershipChange& change,
                    const Settings& parts) {
  const std::string text = refusal_of(settings, change);
  for (const std::string& part : parts)
    EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in: " << text;
}

TEST(NextPlans, AreRefusedWithARemedyWhereTheStrategyCannotDoWithWhatIsLeft) {
  const std::vector<std::string> three = {"cluster.workers=3", "cluster.racks=1",
                                          "cluster.speed_factors=[]", "cluster.memory_factors=[]",
                                          "cluster.stragglers=[]"};
  expect_refused(three + Settings{"strategy={kind=\"pipeline\", stages=3}"}, {.leave = {2}},
                 {"strategy.stages: ", "without rank 2: ", "makes 3 stages", "cluster.workers = 2",
                  "set cluster.workers = 3"});
  expect_refused({"strategy={kind=\"pipeline\", replicas=2, stages=3}"}, {.leave = {2}},
                 {"strategy.replicas: ", "without rank 2: ", "divide cluster.workers = 5"});
  expect_refused(
      {"strategy={kind=\"parameter_server\", consistency=\"ssp\", servers=2}"}, {.leave = {6, 7}},
      {"strategy.servers: ", "without ranks 6 and 7: ", "no server is left", "must stay"});
  expect_refused({"strategy={kind=\"parameter_server\", servers=2, replicas=1}"}, {.leave = {7}},
                 {"strategy.replicas", "needs at least 2 servers"});
  expect_refused({"strategy={kind=\"parameter_server\", consistency=\"backup\", backup=2}"},
                 {.leave = {0, 1, 2, 3}}, {"strategy.backup", "leaves no worker to wait for"});
  expect_refused({"strategy={kind=\"federated_averaging\"}"}, {.leave = {6}},
                 {"strategy.kind: ", "cannot do without its server, rank 6; it must stay"});
  expect_refused(three + Settings{"strategy={kind=\"early_exit\", devices=1}"}, {.leave = {0}},
                 {"strategy.devices: ", "no device is left"});
  expect_refused({}, {.leave = {0, 1, 2, 3, 4, 5}}, {"cluster.workers: ", "no worker is left"});
}

TEST(MembershipChanges, AreSaidInWords) {
  const auto words = [](const Settings& settings, const MembershipChange& change) {
    const Resolved now = resolve(with_settings(uneven_tasks()[0], settings));
    std::string text;
    for (const PlanChange& each : membership_changes(now.plan, change, resolve(now, change).plan))
      text += each.about + ": " + each.text + "\n";
    return text;
  };
  const std::string one_rack = "cluster.racks=1";
  EXPECT_EQ(words({one_rack}, {.leave = {5}}), "");
  EXPECT_EQ(words({one_rack}, {.leave = {0, 3}, .come = 1}),
            "ranks: 1 to 2 become 0 to 1, 4 to 5 become 2 to 3\nnew: rank 4\n");
  EXPECT_EQ(words({one_rack, "strategy.kind=parameter_server"}, {.leave = {}, .come = 2}),
            "ranks: 6 becomes 8\nnew: ranks 6 to 7\n");
  // Three nodes of the second rack are left beside one of the first.
  EXPECT_EQ(words({}, {.leave = {0, 1}}),
            "ranks: 2 to 5 become 0 to 3\n"
            "racks: dealt anew in the order of the ranks, as racks are equal\n");
  EXPECT_EQ(words({one_rack, "cluster.nodes_per_host=2"}, {.leave = {0}}),
            "ranks: 1 to 5 become 0 to 4\n"
            "hosts: filled anew in the order of the ranks, as hosts are equal\n");
}

}  // namespace
}  // namespace tutti
