// Checks that the books of every strategy add up, on both fabrics: samples, bytes, seconds and
// joules of the parts are those of the whole. Checks also that what was counted was learnt: when
// all samples have the same gradient, parameters move by exactly the samples in the record.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <numeric>
#include <set>
#include <sstream>

#include "jobs/predict_cost.h"
#include "jobs/run_folder.h"
#include "tests/support/parameters.h"

namespace tutti {
namespace {

using namespace testing_support;
using nlohmann::json;

constexpr int kWorkers = 4;
constexpr double kTarget = 1e6, kRate = 1e-7;
constexpr int kRows = 160, kBatch = 24;  // 96 to train on: 4 whole batches, each of 4 equal shares

// Every sample is x = 1, y = 1e6. The prediction stays so far below that the gradient of a squared
// error is -1e6 for weight and bias, whatever has been learnt.
Settings constant_gradient(const std::string& file) {
  std::ofstream out(file);
  for (int i = 0; i < kRows; ++i) out << "1," << kTarget << "\n";
  return {
      "task.data.kind=csv",        "task.data.path=" + file, "task.data.header=no",
      "task.data.standardise=false",
      "task.data.regression=true", "task.data.test=0.25",    "task.data.validation=0.2",
      "task.model=linear",         "optimizer.kind=sgd",     fmt::format("optimizer.lr={}", kRate)};
}

// This task is for strategies that cut a model into layers or need classes.
Settings layered() {
  return {"task.data.kind=synthetic-classes",
          "task.data.samples=160",
          "task.data.features=16",
          "task.data.classes=4",
          "task.data.test=0.25",
          "task.data.validation=0.2",
          "task.model.kind=mlp",
          "task.model.hidden=[16, 16, 16, 16, 16, 16, 16]"};
}

Settings lasso() {
  return {"task.data.kind=synthetic-linear", "task.data.samples=160",
          "task.data.features=16",           "task.data.test=0.25",
          "task.data.validation=0.2",        "task.model=linear"};
}

Settings everywhere(const std::string& fabric) {
  const Settings common = {"task.global_batch=" + std::to_string(kBatch),
                           "task.epochs=4",
                           "footprint.price=3.6",
                           "footprint.tdp=40",
                           "cluster.timeout=60",
                           "cluster.fabric=" + fabric,
                           "cluster.workers=" + std::to_string(kWorkers)};
  // A host draws the same power whether busy or not, so that energy follows from time alone.
  return fabric == "process"
             ? common
             : common + Settings{"cluster.idle_power=100", "cluster.busy_power=100",
                                 "cluster.link_idle_power=5", "cluster.link_busy_power=5",
                                 "cluster.speed_factors=[1, 0.9, 0.5, 0.2]"};
}

// Returns why parameters do not move by the samples that were counted; empty if they must.
std::string moves_otherwise(const std::string& variant, const std::string& kind) {
  static const std::map<std::string, std::string> kReasons = {
      {"elastic-averaging", "the centre goes a part of the way to its workers"},
      {"elastic-averaging-async", "the centre goes a part of the way to its workers"},
      {"diloco", "an outer optimizer with momentum makes other steps of what was learnt"},
      {"diloco-streaming", "an outer optimizer with momentum makes other steps"},
      {"ps-backup1", "a step is the mean of those that came in time"},
      {"hogwild", "workers that write at once lose updates, as they are meant to"}};
  if (kReasons.contains(variant)) return kReasons.at(variant);
  if (kind == "early_exit" || kind == "hybrid" || kind == "pipeline" || kind == "tensor")
    return "a model of one layer cannot be cut; equivalence_test compares it with solo";
  if (kind == "scheduled") return "coordinates are solved for, there is no gradient step";
  return "";
}

struct Books {
  std::string name, kind;
  Job job;
  RunRecord record;
  json written;
  std::vector<std::vector<double>> series;  // rows of step, time_s, loss, rate, samples
  std::vector<float> parameters;
  double total(const char* key) const { return written.at(key).get<double>(); }
  double seconds() const { return written.at("time").at("total_s").get<double>(); }
  bool synchronous() const { return job.strategy->taxonomy().timing == "synchronous"; }
};

std::vector<std::vector<double>> read_series(const std::string& path) {
  std::istringstream lines(read_file(path));
  std::string line;
  std::getline(lines, line);
  std::vector<std::vector<double>> rows;
  while (std::getline(lines, line)) {
    std::istringstream fields(line);
    rows.emplace_back();
    for (std::string field; std::getline(fields, field, ',');)
      rows.back().push_back(std::strtod(field.c_str(), nullptr));
  }
  return rows;
}

double sum_of(const json& rows, const char* key) {
  return std::accumulate(rows.begin(), rows.end(), 0.0, [&](double sum, const json& row) {
    return sum + row.at(key).get<double>();
  });
}

void expect_bytes_add_up(const Books& run) {
  const json& nodes = run.written.at("nodes");
  EXPECT_EQ(sum_of(nodes, "bytes_sent"), run.total("bytes_sent"));
  EXPECT_EQ(sum_of(nodes, "messages"), run.total("messages"));
  std::map<int, double> by_sender;
  for (const json& link : run.written.at("links"))
    by_sender[link.at(0)] += link.at(2).get<double>();
  for (const json& node : nodes)
    EXPECT_EQ(by_sender[node.at("rank").get<int>()], node.at("bytes_sent").get<double>());
  for (const json& row : run.written.at("evaluations"))
    EXPECT_LE(row.at("bytes").get<double>(), run.total("bytes_sent") + 0.5);
}

void expect_seconds_add_up(const Books& run) {
  const json& nodes = run.written.at("nodes");
  const json& time = run.written.at("time");
  const double data_s = run.record.virtual_clock ? 0.0 : time.at("data_s").get<double>();
  double longest = 0;
  for (const json& node : nodes) {
    const double total = node.at("total_s");
    double phases = 0;
    for (const char* phase : {"compute_s", "communicate_s", "aggregate_s", "wait_s"}) {
      EXPECT_GE(node.at(phase).get<double>(), -1e-12) << phase;
      phases += node.at(phase).get<double>();
    }
    EXPECT_LE(phases, total + 1e-9);
    longest = std::max(longest, total);
    // Polling for messages takes virtual time, but nobody computes meanwhile. In shared memory the
    // time until others see a value is part of a sum.
    if (run.record.virtual_clock && run.name != "direct") {
      EXPECT_LE(node.at("compute_s").get<double>() + node.at("aggregate_s").get<double>(),
                node.at("cpu_s").get<double>() + 1e-9);
    }
  }
  EXPECT_DOUBLE_EQ(run.seconds(), longest + data_s);
  for (const char* phase : {"compute_s", "communicate_s", "aggregate_s", "wait_s"})
    EXPECT_NEAR(time.at(phase).get<double>(),
                sum_of(nodes, phase) / static_cast<double>(nodes.size()), 1e-12);
  EXPECT_NEAR(time.at("cpu_s").get<double>(), sum_of(nodes, "cpu_s"), 1e-9);
}

void expect_samples_add_up(const Books& run) {
  const double all = run.total("samples"), own = sum_of(run.written.at("nodes"), "samples");
  if (run.name == "ps-backup1") {
    EXPECT_GE(own, all);  // parts that came too late were computed for nothing
  } else {
    EXPECT_EQ(own, all);
  }
  EXPECT_GT(all, 0);
  ASSERT_FALSE(run.series.empty());
  // A worker that does not wait for the others does not see their last steps.
  if (run.synchronous()) {
    EXPECT_EQ(run.series.back()[4], all);
  } else {
    EXPECT_LE(run.series.back()[4], all);
  }
  for (size_t i = 1; i < run.series.size(); ++i)
    for (const size_t column : {0u, 1u, 4u})
      EXPECT_GE(run.series[i][column], run.series[i - 1][column]);
  EXPECT_NEAR(run.total("samples_per_s"), all / run.seconds(), 1e-6 * all / run.seconds());
}

void expect_measurements_in_order(const Books& run) {
  const json& rows = run.written.at("evaluations");
  ASSERT_FALSE(rows.empty());
  for (size_t i = 1; i < rows.size(); ++i)
    for (const char* key : {"step", "time_s", "epoch", "samples", "bytes"})
      EXPECT_GE(rows[i].at(key).get<double>(), rows[i - 1].at(key).get<double>()) << key << i;
  EXPECT_EQ(rows.back().at("samples").get<double>(), run.total("samples"));
  EXPECT_LE(rows.back().at("time_s").get<double>(), run.seconds() + 1e-9);
  if (run.synchronous()) {
    EXPECT_EQ(rows.back().at("step").get<double>(), run.total("steps"));
  }
}

void expect_energy_follows_from_time(const Books& run) {
  const double joules = run.written.at("energy").at("joules");
  const auto nodes = static_cast<double>(run.written.at("nodes").size());
  if (run.record.virtual_clock) {
    const double hosts = std::ceil(nodes / static_cast<double>(run.job.cluster.nodes_per_host));
    const auto racks = static_cast<double>(run.job.cluster.racks);
    const double links = hosts < 2 ? 0 : hosts + (racks > 1 ? racks : 0);
    EXPECT_NEAR(joules, (100 * hosts + 5 * links) * run.seconds(), 1e-6 * joules);
    EXPECT_NEAR(run.written.at("cost").at("amount").get<double>(), 1e-3 * hosts * run.seconds(),
                1e-9);
  } else {
    EXPECT_NEAR(run.written.at("cost").at("amount").get<double>(), 1e-3 * run.seconds(), 1e-9);
    if (run.written.at("energy").at("method").get<std::string>().starts_with("estimated")) {
      EXPECT_GE(joules, (0.1 * 40 + 10) * run.seconds() * (1 - 1e-9));
      EXPECT_LE(joules, (40 + 10) * run.seconds() * (1 + 1e-9));
    }
  }
  EXPECT_NEAR(run.written.at("co2e").at("grams").get<double>(), joules / 3.6e6 * 475,
              1e-9 * joules);
}

// Compares how far weight and bias have moved with the steps of whole batches.
void expect_moved_by_its_samples(const Books& run) {
  const Data data = load_data(run.job.task.data, run.job.task.seed, run.job.base_dir);
  const Architecture architecture = architecture_of(run.job, data);
  std::vector<float> before(architecture.parameter_count);
  initialise(architecture, run.job.task.seed, before);
  const double steps = run.total("samples") / kBatch;
  ASSERT_EQ(before.size(), run.parameters.size());
  for (size_t i = 0; i < before.size(); ++i) {
    const double moved = static_cast<double>(run.parameters[i]) - static_cast<double>(before[i]);
    EXPECT_NEAR(moved / (kRate * kTarget), steps, 1e-4 * steps);
  }
}

void expect_memory_of_each_node(const Books& run) {
  if (!run.record.virtual_clock) return;
  const Prepared prepared = prepare(run.job);
  const std::vector<double> predicted =
      predicted_memory_by_node(run.job, prepared.architecture, prepared.data.splits.train.size());
  for (const json& node : run.written.at("nodes"))
    EXPECT_EQ(node.at("peak_memory_bytes").get<double>(),
              predicted.at(node.at("rank").get<size_t>()));
}

void expect_books_add_up(const Books& run) {
  ASSERT_EQ(run.record.status, "done") << run.record.error;
  ASSERT_EQ(run.written.at("nodes").size(), run.job.strategy->roles(run.job.cluster).size());
  expect_bytes_add_up(run);
  expect_seconds_add_up(run);
  expect_samples_add_up(run);
  expect_measurements_in_order(run);
  expect_energy_follows_from_time(run);
  expect_memory_of_each_node(run);
  if (moves_otherwise(run.name, run.kind).empty()) expect_moved_by_its_samples(run);
}

// Returns the first task that the variant can train, or nothing and the reason in `refused`.
std::optional<Job> job_for(const Settings& variant, const std::string& fabric,
                           const std::string& file, std::string& refused) {
  const std::vector<Settings> tasks = {constant_gradient(file), layered(), lasso()};
  for (const Settings& task : tasks) {
    try {
      Job job = load_job("", task + everywhere(fabric) + variant);
      job.strategy->fit(job.cluster);
      prepare(job);
      return job;
    } catch (const ConfigError& error) {
      refused = error.what();
    }
  }
  return std::nullopt;
}

class Conservation : public testing::TestWithParam<std::string> {};

TEST_P(Conservation, PartsOfEveryStrategyMakeItsTotals) {
  const TemporaryFolder folder;
  std::set<std::string> refused;
  for (const StrategyEntry& entry : strategy_catalog())
    for (const Variant& variant : entry.variants()) {
      SCOPED_TRACE(variant.name);
      Settings settings = {"strategy.kind=" + std::string(entry.name)};
      for (const std::string& setting : variant.settings) settings.push_back("strategy." + setting);
      const bool one_host = variant.name == "direct";
      if (one_host && GetParam() == "virtual") settings.push_back("cluster.nodes_per_host=4");
      if (variant.name == "hierarchical") settings.push_back("cluster.racks=2");
      std::string why;
      std::optional<Job> job = job_for(settings, GetParam(), folder / "constant.csv", why);
      if (!job) {
        refused.insert(variant.name);
        continue;
      }
      const std::string out = folder / variant.name;
      const std::atomic<bool> never{false};
      RunRecord record =
          launch(*job, {.out = out, .keep_files = true, .progress = ProgressStyle::kNone}, never);
      Books run{
          variant.name, std::string(entry.name), std::move(*job), std::move(record), {}, {}, {}};
      run.written = json::parse(read_file(out + "/run.json"));
      run.series = read_series(out + "/series.csv");
      if (moves_otherwise(run.name, run.kind).empty()) {
        ASSERT_EQ(run.job.task.data.kind, "csv") << why;
        run.parameters.resize(2);
        const Data data = load_data(run.job.task.data, run.job.task.seed, run.job.base_dir);
        load_parameters(out + "/parameters.safetensors", architecture_of(run.job, data),
                        run.parameters);
      }
      expect_books_add_up(run);
    }
  // Only hogwild is refused: shared memory is not simulated.
  EXPECT_EQ(refused,
            GetParam() == "virtual" ? std::set<std::string>{"hogwild"} : std::set<std::string>{});
}

INSTANTIATE_TEST_SUITE_P(Fabrics, Conservation, testing::Values("virtual", "process"),
                         [](const auto& fabric) { return fabric.param; });

// The machine draws at least its idle power all the time, and most of that time it reads data.
TEST(Energy, CountsTheReadingOfData) {
  const RunRecord record =
      run(logistic_task() + Settings{"task.data.samples=400000", "task.data.limit=100",
                                     "task.max_steps=1", "footprint.tdp=40", "footprint.price=3.6",
                                     "cluster.workers=1", "strategy.kind=solo"});
  ASSERT_EQ(record.status, "done") << record.error;
  EXPECT_GT(record.data_s, record.nodes[0].total_s);
  EXPECT_NEAR(record.cost.value, 1e-3 * (record.data_s + record.nodes[0].total_s), 1e-9);
  if (!record.energy_method.starts_with("estimated")) GTEST_SKIP() << record.energy_method;
  EXPECT_GE(record.joules, 14 * (record.data_s + record.nodes[0].total_s));
}

// The rate falls until the end of the run, wherever that is.
TEST(CosineSchedule, EndsAtTheLastStep) {
  const TemporaryFolder folder;
  const std::map<std::string, Settings> strategies = {
      {"solo", {"strategy.kind=solo"}},
      {"ring", {"strategy.kind=allreduce"}},
      {"local", {"strategy.kind=local_sgd"}},
      {"gossip", {"strategy.kind=gossip", "strategy.mode=async"}},
      {"servers", {"strategy.kind=parameter_server"}},
      {"federated", {"strategy.kind=federated_averaging"}}};
  for (const auto& [name, settings] : strategies) {
    const RunRecord record = run(logistic_task() + settings +
                                     Settings{"cluster.fabric=virtual", "task.epochs=50",
                                              "task.max_steps=4", "optimizer.schedule=cosine"},
                                 folder / name);
    ASSERT_EQ(record.status, "done") << name << record.error;
    const auto rows = read_series(folder / name + "/series.csv");
    EXPECT_LT(rows.back()[3], 0.5 * rows.front()[3]) << name;
  }
}

// The loss of a step is that of its batch, however many workers share it.
TEST(BatchLoss, DoesNotDependOnTheNumberOfWorkers) {
  const TemporaryFolder folder;
  const auto losses = [&](const std::string& name, const Settings& settings) {
    const RunRecord record = run(logistic_task() + settings, folder / name);
    EXPECT_EQ(record.status, "done") << record.error;
    return read_series(folder / name + "/series.csv");
  };
  const auto alone = losses("solo", {"strategy.kind=solo", "cluster.fabric=virtual"});
  ASSERT_EQ(alone.size(), 11u);
  const Settings four = {"cluster.workers=4"};
  const std::map<std::string, Settings> others = {
      {"ring", {"strategy.kind=allreduce", "cluster.fabric=virtual"}},
      {"processes", {"strategy.kind=allreduce", "cluster.fabric=process"}},
      {"servers", {"strategy.kind=parameter_server", "cluster.fabric=virtual"}},
      {"many", {"strategy.kind=allreduce", "cluster.fabric=virtual", "cluster.workers=37"}}};
  for (const auto& [name, settings] : others) {
    const auto shared = losses(name, four + settings);
    ASSERT_EQ(shared.size(), alone.size()) << name;
    for (size_t i = 0; i < alone.size(); ++i)
      EXPECT_NEAR(shared[i][2], alone[i][2], 1e-5 * alone[i][2]) << name << " step " << i + 1;
  }
}

}  // namespace
}  // namespace tutti
