// Checks that the books of every strategy add up, on both fabrics: samples, bytes, seconds and
// joules of the parts are those of the whole. Checks also that what was counted was learnt: when
// all samples have the same gradient, parameters move by exactly the samples in the record.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "jobs/resolve.h"
#include "jobs/run_folder.h"
#include "tests/strategies/constant_gradient.h"
#include "tests/strategies/series_file.h"
#include "tests/support/parameters.h"

namespace tutti {
namespace {

using namespace testing_support;
using nlohmann::json;

constexpr int kWorkers = 4;
constexpr double kIdle_w = 60, kBusy_w = 150, kLinkIdle_w = 3, kLinkBusy_w = 8;
constexpr double kTdp_w = 40, kMemory_w = 10;  // of this machine

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
                           fmt::format("footprint.tdp={}", kTdp_w),
                           "cluster.timeout=60",
                           "cluster.fabric=" + fabric,
                           "cluster.workers=" + std::to_string(kWorkers)};
  return fabric == "process"
             ? common
             : common + Settings{fmt::format("cluster.idle_power={}", kIdle_w),
                                 fmt::format("cluster.busy_power={}", kBusy_w),
                                 fmt::format("cluster.link_idle_power={}", kLinkIdle_w),
                                 fmt::format("cluster.link_busy_power={}", kLinkBusy_w),
                                 "cluster.speed_factors=[1, 0.9, 0.5, 0.2]"};
}

// Returns why parameters do not move by the samples that were counted; empty if they do.
// docs/definitions.md says why at length, and displacement_test.cpp has what they do instead.
std::string moves_otherwise(const std::string& variant, const std::string& kind) {
  static const std::map<std::string, std::string> kReasons = {
      {"elastic-averaging", "the centre goes a part of the way to its workers"},
      {"elastic-averaging-async", "the centre goes a part of the way to its workers"},
      {"diloco", "an outer optimizer with momentum makes other steps of what was learnt"},
      {"diloco-streaming", "an outer optimizer with momentum makes other steps"},
      {"ps-backup1", "a step is the mean of those that came in time"},
      {"hogwild", "workers that write at once lose updates, as they are meant to"}};
  if (kReasons.contains(variant)) return kReasons.at(variant);
  if (kind == "early_exit" || kind == "hybrid" || kind == "pipeline" ||
      kind == "pipeline_servers" || kind == "tensor")
    return "a model of one layer cannot be cut; it is compared with solo elsewhere";
  if (kind == "scheduled") return "coordinates are solved for, there is no gradient step";
  return "";
}

struct Books {
  std::string name, kind;
  Job job;
  RunRecord record;
  json written;
  std::vector<std::vector<double>> series;  // rows of step, time_s, loss, rate, samples
  std::vector<double> moved;                // by weight and bias, in steps
  double total(const char* key) const { return written.at(key).get<double>(); }
  double seconds() const { return written.at("time").at("total_s").get<double>(); }
  bool synchronous() const { return job.strategy->taxonomy().timing == Timing::kSynchronous; }
};

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

constexpr std::array<const char*, 5> kPhases = {"compute_s", "communicate_s", "aggregate_s",
                                                "wait_s", "other_s"};
// Each change of phase rounds a time to 2^-53 of the run's length. There are some ten thousand.
constexpr double kRounding_s = 1e-9;

void expect_seconds_add_up(const Books& run) {
  const json& nodes = run.written.at("nodes");
  const json& time = run.written.at("time");
  const double data_s = run.record.virtual_clock ? 0.0 : time.at("data_s").get<double>();
  double longest = 0;
  for (const json& node : nodes) {
    const double total = node.at("total_s");
    double phases = 0;
    for (const char* phase : kPhases) {
      EXPECT_GE(node.at(phase).get<double>(), -kRounding_s) << phase;
      phases += node.at(phase).get<double>();
    }
    EXPECT_NEAR(phases, total, kRounding_s);
    longest = std::max(longest, total);
    // Polling for messages takes virtual time, but nobody computes meanwhile. In shared memory the
    // time until others see a value is part of a sum.
    if (run.record.virtual_clock && run.name != "direct") {
      EXPECT_LE(node.at("compute_s").get<double>() + node.at("aggregate_s").get<double>(),
                node.at("cpu_s").get<double>() + 1e-9);
    }
  }
  EXPECT_DOUBLE_EQ(run.seconds(), longest + data_s);
  for (const char* phase : kPhases)
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

// Returns how many joules the links of all hosts (by host), or of all racks, take beyond their idle
// power: they grow with the bytes in and out.
std::map<int64_t, double> joules_of_bytes(const Books& run, bool racks) {
  const ClusterConfig& cluster = run.job.cluster;
  const double bandwidth = racks ? cluster.rack_bandwidth : cluster.bandwidth;
  std::map<int64_t, double> joules;
  for (const json& link : run.written.at("links")) {
    const int from = link.at(0), to = link.at(1);
    const auto place = [&](int rank) {
      return racks ? rack_of(cluster, rank) : host_of(cluster, rank);
    };
    if (place(from) == place(to)) continue;
    constexpr double kWire = 0.957;  // headers take the rest
    const double busy_s = link.at(2).get<double>() / kWire / bandwidth;
    for (const int end : {from, to}) joules[place(end)] += busy_s * (kLinkBusy_w - kLinkIdle_w) / 2;
  }
  return joules;
}

// Returns what each part must have taken, from times and bytes in the record.
std::map<std::string, double> simulated_joules(const Books& run) {
  const ClusterConfig& cluster = run.job.cluster;
  std::map<int64_t, double> busy_s, cores;
  for (const json& node : run.written.at("nodes")) {
    const int rank = node.at("rank");
    busy_s[host_of(cluster, rank)] += node.at("cpu_s").get<double>();
    // A server beside a worker has no core of its own.
    cores[host_of(cluster, rank)] += !cluster.colocated || rank < cluster.workers ? 1 : 0;
  }
  std::map<std::string, double> joules;
  for (const auto& [host, seconds] : busy_s)
    joules[fmt::format("host {}", host)] =
        kIdle_w * run.seconds() + (kBusy_w - kIdle_w) * seconds / cores[host];
  if (busy_s.size() < 2) return joules;
  std::map<int64_t, double> links = joules_of_bytes(run, false);
  for (const auto& [host, seconds] : busy_s)
    joules[fmt::format("link of host {}", host)] = kLinkIdle_w * run.seconds() + links[host];
  if (cluster.racks < 2) return joules;
  std::map<int64_t, double> uplinks = joules_of_bytes(run, true);
  for (int64_t rack = 0; rack < cluster.racks; ++rack)
    joules[fmt::format("uplink of rack {}", rack)] = kLinkIdle_w * run.seconds() + uplinks[rack];
  return joules;
}

// Returns the same for this machine, where nothing measures it.
std::map<std::string, double> estimated_joules(const Books& run) {
  const json& parts = run.written.at("energy").at("parts");
  const double cpu_s = run.record.data_cpu_s + sum_of(run.written.at("nodes"), "cpu_s");
  double computing = 0;
  for (const json& part : parts)
    if (part.at("of") != "idle processor" && part.at("of") != "memory")
      computing += part.at("joules").get<double>();
  EXPECT_LE(computing, 0.9 * kTdp_w * run.seconds() * (1 + 1e-9));
  std::map<std::string, double> joules = {
      {"idle processor", 0.1 * kTdp_w * run.seconds()},
      {"memory", kMemory_w * run.seconds()},
      {"reading data", computing * run.record.data_cpu_s / cpu_s}};
  for (const json& node : run.written.at("nodes"))
    joules[fmt::format("node {}", node.at("rank").get<int>())] =
        computing * node.at("cpu_s").get<double>() / cpu_s;
  return joules;
}

void expect_joules_add_up(const Books& run) {
  const json& energy = run.written.at("energy");
  const double joules = energy.at("joules");
  EXPECT_GT(joules, 0);
  EXPECT_DOUBLE_EQ(sum_of(energy.at("parts"), "joules"), joules);  // but for the last bits
  EXPECT_NEAR(run.written.at("co2e").at("grams").get<double>(), joules / 3.6e6 * 475,
              1e-9 * joules);
  const double machines = run.record.virtual_clock ? run.total("machines") : 1;
  EXPECT_NEAR(run.written.at("cost").at("amount").get<double>(), 1e-3 * machines * run.seconds(),
              1e-9);
  const std::string method = energy.at("method");
  if (method.starts_with("measured")) return;
  const std::map<std::string, double> expected =
      run.record.virtual_clock ? simulated_joules(run) : estimated_joules(run);
  EXPECT_EQ(energy.at("parts").size(), expected.size());
  for (const json& part : energy.at("parts")) {
    const auto found = expected.find(part.at("of").get<std::string>());
    ASSERT_NE(found, expected.end()) << part;
    // The simulator rounds times to 1e-9 of a second, which shows at thousands of short passes.
    EXPECT_NEAR(part.at("joules").get<double>(), found->second, 1e-6 * joules) << part;
  }
}

// Compares how far weight and bias have moved with the steps of whole batches.
void expect_moved_by_its_samples(const Books& run) {
  const double steps = run.total("samples") / kBatch;
  for (const double moved : run.moved) EXPECT_NEAR(moved, steps, 1e-4 * steps);
}

void expect_memory_of_each_node(const Books& run) {
  if (!run.record.virtual_clock) return;
  const Plan plan = resolve(run.job).plan;
  for (const json& node : run.written.at("nodes"))
    EXPECT_EQ(node.at("peak_memory_bytes").get<double>(),
              plan.nodes.at(node.at("rank").get<size_t>()).memory_bytes);
}

void expect_books_add_up(const Books& run) {
  ASSERT_EQ(run.record.status, RunStatus::kDone) << run.record.error;
  ASSERT_EQ(run.written.at("nodes").size(), resolve(run.job).plan.roles().size());
  expect_bytes_add_up(run);
  expect_seconds_add_up(run);
  expect_samples_add_up(run);
  expect_measurements_in_order(run);
  expect_joules_add_up(run);
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
      resolve(job);
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
        ASSERT_EQ(run.job.task.data.kind(), "csv") << why;
        run.moved = steps_moved(run.job, out);
      }
      expect_books_add_up(run);
    }
  // Only hogwild is refused: shared memory is not simulated.
  EXPECT_EQ(refused,
            GetParam() == "virtual" ? std::set<std::string>{"hogwild"} : std::set<std::string>{});
}

INSTANTIATE_TEST_SUITE_P(Fabrics, Conservation, testing::Values("virtual", "process"),
                         [](const auto& fabric) { return fabric.param; });

}  // namespace
}  // namespace tutti
