// Rounds in virtual time: who is waited for, who comes late, and that workers do not matter.
#include <gtest/gtest.h>

#include "tests/support/parameters.h"

namespace tutti {
namespace {

using namespace testing_support;

Settings rounds_task(const Settings& more) {
  return logistic_task() +
         Settings{"strategy.kind=federated_averaging", "strategy.clients=12",
                  "strategy.client_batch=4", "task.epochs=4"} +
         more;
}

Settings virtual_rounds(const Settings& more) {
  return rounds_task({"cluster.fabric=virtual", "cluster.workers=4", "cluster.step_overhead=0",
                      "cluster.layer_overhead=0", "cluster.speed=\"10 MFLOP/s\""}) +
         more;
}

int64_t counter(const RunRecord& record, const std::string& name) {
  int64_t total = 0;
  for (const NodeReport& node : record.nodes)
    if (node.counters.contains(name)) total += node.counters.at(name);
  return total;
}

double seconds(const RunRecord& record) { return record.nodes.back().total_s; }

RunRecord done(const Settings& settings) {
  const RunRecord record = run(settings);
  EXPECT_EQ(record.status, RunStatus::kDone) << record.error;
  return record;
}

TEST(FederatedRounds, AreTheSameForAnyNumberOfWorkersOnEveryFabric) {
  for (const Settings& more :
       {Settings{"strategy.fraction=0.5", "task.deterministic=true"},
        Settings{"strategy.split={kind=\"dirichlet\", alpha=0.3}", "strategy.dropout=0.3"},
        Settings{"strategy.algorithm=scaffold", "strategy.local_steps=3", "strategy.fraction=0.4",
                 "strategy.availability={kind=\"random\", share=0.6}"}}) {
    const std::string expected = checksum(rounds_task(more) + Settings{"cluster.workers=1"});
    for (const char* workers : {"2", "5"})
      for (const char* fabric : {"virtual", "process"})
        EXPECT_EQ(checksum(rounds_task(more) + Settings{"cluster.workers=" + std::string(workers),
                                                        "cluster.fabric=" + std::string(fabric)}),
                  expected)
            << more[0] << ", " << workers << " workers, " << fabric;
  }
}

// The server keeps the record; a worker counts the clients that it computed for.
TEST(FederatedRounds, RecordsARoundAsAStepOfTheServer) {
  const RunRecord record =
      done(virtual_rounds({"strategy.fraction=0.5", "task.max_steps=8", "task.epochs=100"}));
  const NodeReport& server = record.nodes.back();
  EXPECT_EQ(server.steps, 8);
  EXPECT_GE(server.samples, 8 * 6 * 32);  // of 389 in 12 clients
  int64_t computed = 0;
  for (const NodeReport& node : record.nodes) computed += node.own_samples;
  EXPECT_EQ(computed, server.samples);
  ASSERT_GE(record.evaluations.size(), 3u);
  EXPECT_EQ(record.evaluations.back().step, 8);
  EXPECT_GT(record.evaluations.back().quality, 0.9);
  EXPECT_EQ(counter(record, "client_updates"), 8 * 6);
  const Extra::Table& table = server.extra.tables.at("labels_of_clients");
  ASSERT_EQ(table.rows.size(), 12u);
  double samples = 0;
  for (const auto& row : table.rows) {
    ASSERT_EQ(row.size(), table.columns.size());
    double labels = 0;
    for (size_t i = 2; i < row.size(); ++i) labels += row[i];
    EXPECT_EQ(labels, row[1]);
    samples += labels;
  }
  EXPECT_EQ(samples, 389);
}

TEST(FederatedRounds, DrawTheSameWhenOnlyCostsCountAndTakeTheSameTime) {
  const Settings settings =
      virtual_rounds({"strategy.fraction=0.5", "strategy.dropout=0.2", "strategy.quorum=2"});
  const RunRecord full = done(settings);
  const RunRecord costs = done(settings + Settings{"cluster.cost_only=true"});
  EXPECT_EQ(seconds(full), seconds(costs));
  EXPECT_EQ(counter(full, "clients_dropped"), counter(costs, "clients_dropped"));
  for (size_t i = 0; i < full.nodes.size(); ++i)
    EXPECT_EQ(full.nodes[i].bytes_sent, costs.nodes[i].bytes_sent);
}

TEST(FederatedRounds, BytesAreThoseOfTheClientsNotOfTheWorkers) {
  const auto bytes = [&](const char* algorithm) {
    const RunRecord record = done(virtual_rounds({"task.max_steps=4", "task.eval_every=1000",
                                                  "strategy.algorithm=" + std::string(algorithm)}));
    double sent = 0;
    for (const NodeReport& node : record.nodes) sent += static_cast<double>(node.bytes_sent);
    return sent;
  };
  // 68 parameters there and back for 12 clients in 4 rounds; the rest are orders and
  // reports.
  const double vectors = 4 * 12 * 2 * 68 * sizeof(float);
  EXPECT_GT(bytes("fedavg"), vectors);
  EXPECT_NEAR(bytes("scaffold") - bytes("fedavg"), vectors, 1);
}

// A worker reports of each client beside its update; SCAFFOLD's updates are two vectors.
TEST(FederatedRounds, WorkersSendWhatIsPlanned) {
  for (const char* algorithm : {"fedavg", "scaffold"}) {
    const auto settings_of = [&](const char* rounds) {
      return virtual_rounds({"task.eval_every=1000", "strategy.fraction=1",
                             std::string("task.max_steps=") + rounds,
                             std::string("strategy.algorithm=") + algorithm});
    };
    const RunRecord shorter = done(settings_of("2")), longer = done(settings_of("4"));
    const Plan plan = resolve(load_job("", settings_of("4"))).plan;
    double bytes = 0, messages = 0, planned_bytes = 0, planned_messages = 0;
    for (size_t i = 0; i < plan.nodes.size(); ++i) {
      if (plan.nodes[i].role == "server") continue;
      const NodeReport &after = longer.nodes[i], &before = shorter.nodes[i];
      bytes += static_cast<double>(after.bytes_sent - before.bytes_sent) / 2;
      messages += static_cast<double>(after.messages - before.messages) / 2;
      planned_bytes += plan.nodes[i].bytes_sent;
      planned_messages += plan.nodes[i].messages;
    }
    EXPECT_EQ(planned_messages, messages) << algorithm;
    EXPECT_NEAR(planned_bytes, bytes, 0.02 * bytes) << algorithm;
  }
}

// One of the workers is fifty times slower than the others.
Settings slow_worker(const Settings& more) {
  return virtual_rounds({"cluster.speed_factors=[1.0, 1.0, 1.0, 0.02]", "task.max_steps=8",
                         "task.epochs=100"}) +
         more;
}

TEST(FederatedRounds, DeadlineClosesWithoutTheLate) {
  const RunRecord patient = done(slow_worker({}));
  const RunRecord strict = done(slow_worker({"strategy.deadline=\"2 ms\""}));
  EXPECT_EQ(counter(patient, "clients_late"), 0);
  EXPECT_GT(counter(strict, "clients_late"), 0);
  EXPECT_LT(seconds(strict), 0.7 * seconds(patient));
  EXPECT_EQ(strict.nodes.back().steps, 8);
}

TEST(FederatedRounds, WithoutAQuorumTheDeadlineIsExtended) {
  const RunRecord record = done(slow_worker({"strategy.deadline=\"2 ms\"", "strategy.quorum=12"}));
  EXPECT_EQ(counter(record, "clients_late"), 0);
  EXPECT_EQ(counter(record, "client_updates"), 8 * 12);
  const RunRecord most = done(slow_worker({"strategy.deadline=\"2 ms\"", "strategy.quorum=9"}));
  EXPECT_GE(counter(most, "client_updates"), 8 * 9);
}

TEST(FederatedRounds, OverSelectionTakesTheFirstAnswers) {
  const RunRecord record = done(slow_worker({"strategy.fraction=0.5", "strategy.over_select=1.5"}));
  EXPECT_EQ(counter(record, "client_updates"), 8 * 6);
  EXPECT_EQ(counter(record, "clients_surplus"), 8 * 3);
  EXPECT_LT(seconds(record), seconds(done(slow_worker({"strategy.fraction=0.5"}))));
}

TEST(FederatedRounds, CountDropOutsAndFailWithoutAQuorum) {
  const RunRecord record = done(virtual_rounds(
      {"strategy.dropout=0.5", "task.max_steps=20", "task.epochs=100", "strategy.quorum=6"}));
  const int64_t dropped = counter(record, "clients_dropped");
  EXPECT_EQ(dropped + counter(record, "client_updates"), 20 * 12);
  EXPECT_NEAR(static_cast<double>(dropped), 120, 40);  // five deviations
  EXPECT_GT(counter(record, "rounds_failed"), 0);
  EXPECT_LT(counter(record, "rounds_failed"), 20);
}

TEST(FederatedRounds, ARoundWithoutAQuorumChangesNothing) {
  const Settings settings =
      virtual_rounds({"strategy.dropout=0.99", "strategy.quorum=12", "task.max_steps=3"});
  Job job = load_job("", settings);
  const Data data = load_data(job.task.data, job.task.seed, job.base_dir);
  std::vector<float> initial(architecture_of(job, data).parameter_count);
  initialise(architecture_of(job, data), job.task.seed, initial);
  EXPECT_EQ(parameters_after(settings), initial);
}

TEST(FederatedRounds, NobodyOnlineIsNotARound) {
  const RunRecord record =
      done(virtual_rounds({"strategy.clients=2", "task.max_steps=10", "task.epochs=100",
                           "strategy.availability={kind=\"random\", share=0.2}"}));
  EXPECT_GT(counter(record, "rounds_without_clients"), 0);
  EXPECT_EQ(record.nodes.back().steps, 10);
}

}  // namespace
}  // namespace tutti
