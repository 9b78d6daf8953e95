// Energy, CO2e and money: the formulas, and counters that start again.
#include "jobs/energy.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "jobs/footprint.h"
#include "jobs/run_energy.h"

namespace tutti {
namespace {

// 2 threads of 4 W at half load for 10 s: (8 x (0.1 + 0.9 / 8) + 10) x 10.
TEST(Energy, FollowsTheFormula) {
  EXPECT_DOUBLE_EQ(estimate_energy(10, 10, 2).joules, (8 * (0.1 + 0.9 * 0.125) + 10) * 10);
  EXPECT_DOUBLE_EQ(estimate_energy(1, 0, 4).joules, 16 * 0.1 + 10);     // idle
  EXPECT_DOUBLE_EQ(estimate_energy(2, 8, 4).joules, (16 + 10) * 2.0);   // all busy
  EXPECT_DOUBLE_EQ(estimate_energy(2, 99, 4).joules, (16 + 10) * 2.0);  // never more than that
  EXPECT_EQ(estimate_energy(0, 0, 2).joules, 0);
  EXPECT_TRUE(estimate_energy(1, 1, 2).method.starts_with("estimated"));
}

// A known processor instead of 4 W a thread.
TEST(Energy, TakesTheStatedPower) {
  EXPECT_DOUBLE_EQ(estimate_energy(2, 8, 4, 65).joules, (65 + 10) * 2.0);
}

class Counters : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(root_);
    add("intel-rapl:0", "package-0", 1'000'000);
    add("intel-rapl:0:0", "core", 500'000);  // part of the package
    add("intel-rapl:0:1", "dram", 2'000'000);
    add("intel-rapl:1", "psys", 9'000'000);  // the whole machine, the package included
    add("dtpm", "package-9", 1);             // something else
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void add(const std::string& zone, const std::string& name, uint64_t value) {
    std::filesystem::create_directories(root_ + "/" + zone);
    std::ofstream(root_ + "/" + zone + "/name") << name << "\n";
    std::ofstream(root_ + "/" + zone + "/max_energy_range_uj") << 10'000'000 << "\n";
    set(zone, value);
  }
  void set(const std::string& zone, uint64_t value) {
    std::ofstream(root_ + "/" + zone + "/energy_uj") << value << "\n";
  }
  std::string root_ = testing::TempDir() + "tutti-powercap";
};

TEST_F(Counters, AddUpPackageAndMemoryOnly) {
  EnergyCounters counters(root_);
  ASSERT_TRUE(counters.available());
  set("intel-rapl:0", 4'000'000);
  set("intel-rapl:0:0", 3'000'000);
  set("intel-rapl:0:1", 2'500'000);
  set("intel-rapl:1", 9'900'000);
  counters.sample();
  EXPECT_DOUBLE_EQ(counters.joules(), 3.5);
  EXPECT_TRUE(counters.method().starts_with("measured"));
  EXPECT_NE(counters.method().find("dram"), std::string::npos);
}

TEST_F(Counters, StartAgainAtZero) {
  EnergyCounters counters(root_);
  for (int turn = 0; turn < 3; ++turn) {
    set("intel-rapl:0", 9'000'000);  // 8 J more in the first turn, 6 J in the later ones
    counters.sample();
    set("intel-rapl:0", 3'000'000);  // wraps at 10 J: 4 J more
    counters.sample();
  }
  EXPECT_DOUBLE_EQ(counters.joules(), 8 + 4 + 2 * (6 + 4));
}

TEST_F(Counters, AreAbsentWithoutTheKernelsHelp) {
  EXPECT_FALSE(EnergyCounters(root_ + "/missing").available());
  std::filesystem::remove(root_ + "/intel-rapl:0/energy_uj");
  std::filesystem::remove(root_ + "/intel-rapl:0:1/energy_uj");
  EXPECT_FALSE(EnergyCounters(root_).available());
}

// Reading took 2 s and 3 s of a processor; then two nodes trained for up to 6 s.
RunRecord read_and_trained() {
  RunRecord record;
  record.data_s = 2;
  record.data_cpu_s = 3;
  record.data_joules = 7;
  for (const int rank : {0, 1}) {
    NodeReport& node = record.nodes.emplace_back();
    node.rank = rank;
    node.total_s = 6 - rank;
    node.cpu_s = rank == 0 ? 1 : 4;
  }
  return record;
}

std::map<std::string, double> parts_of(const RunRecord& record) {
  std::map<std::string, double> parts;
  for (const EnergyPart& part : record.energy_parts) parts[part.of] = part.joules;
  return parts;
}

TEST(RunEnergy, EstimatesReadingByItsTimeAndItsProcessorTime) {
  RunRecord record = read_and_trained();
  Job job;
  job.footprint.tdp_watts = 100;
  add_energy(record, job, {});
  const Energy all =
      estimate_energy(2 + 6, 3 + 1 + 4, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)), 100);
  EXPECT_NEAR(record.joules, all.joules, 1e-9 * all.joules);
  const auto parts = parts_of(record);
  EXPECT_NEAR(parts.at("reading data"), all.busy_joules * 3 / 8, 1e-9 * all.joules);
  EXPECT_NEAR(parts.at("node 0"), all.busy_joules * 1 / 8, 1e-9 * all.joules);
  EXPECT_NEAR(parts.at("node 1"), all.busy_joules * 4 / 8, 1e-9 * all.joules);
}

TEST(RunEnergy, CountersMeasuredReadingToo) {
  RunRecord record = read_and_trained();
  record.nodes[0].joules = 50;
  record.nodes[0].energy_method = "measured";
  add_energy(record, Job(), {});
  EXPECT_EQ(parts_of(record),
            (std::map<std::string, double>{{"training", 50}, {"reading data", 7}}));
  EXPECT_EQ(record.joules, 57);
}

TEST(Footprint, FollowsTheGrid) {
  FootprintConfig config;
  EXPECT_DOUBLE_EQ(co2e_grams(config, 3.6e6).value, 475);
  EXPECT_NE(co2e_grams(config, 1).method.find("475 g/kWh (CodeCarbon's default for the world)"),
            std::string::npos);
  config.country = "FRA";
  EXPECT_DOUBLE_EQ(co2e_grams(config, 7.2e6).value, 112);
  EXPECT_NE(co2e_grams(config, 1).method.find("56 g/kWh (mean of FRA, 2023)"), std::string::npos);
  config.intensity = 100;
  EXPECT_DOUBLE_EQ(co2e_grams(config, 3.6e6).value, 100);
  EXPECT_NE(co2e_grams(config, 1).method.find("as set"), std::string::npos);
}

TEST(Footprint, KilowattHoursAndCo2eCountTheDataCentre) {
  FootprintConfig config;
  EXPECT_DOUBLE_EQ(kilowatt_hours(config, 7.2e6), 2);
  EXPECT_EQ(co2e_grams(config, 1).method.find("PUE"), std::string::npos);
  config.pue = 1.5;
  EXPECT_DOUBLE_EQ(kilowatt_hours(config, 7.2e6), 3);
  EXPECT_DOUBLE_EQ(co2e_grams(config, 7.2e6).value, 3 * 475);
  EXPECT_NE(co2e_grams(config, 1).method.find("energy x PUE 1.5 x 475"), std::string::npos);
}

TEST(Footprint, CostIsMachinesTimesTime) {
  FootprintConfig config;
  config.price = 0.5;
  config.currency = "USD";
  ClusterConfig cluster;
  cluster.fabric = FabricKind::kVirtual;
  Cost cost = cost_of(config, cluster, 8, 1800);
  EXPECT_DOUBLE_EQ(cost.on_demand.value, 2);
  EXPECT_EQ(cost.on_demand.method, "8 machines x time x 0.5 USD an hour");
  EXPECT_FALSE(cost.spot);
  config.spot_price = 0.2;
  EXPECT_DOUBLE_EQ(*cost_of(config, cluster, 8, 1800).spot, 0.8);
  // Hosts of a kind have prices of their own; those that may not be taken away cost the full price.
  config.spot_price = 0;
  cluster.host_kinds = {{.name = "large", .hosts = {0, 2}, .price = 3, .spot_price = 1},
                        {.name = "plain", .hosts = {1}}};
  cost = cost_of(config, cluster, 4, 3600);
  EXPECT_DOUBLE_EQ(cost.on_demand.value, 2 * 3 + 2 * 0.5);
  EXPECT_DOUBLE_EQ(*cost.spot, 2 * 1 + 2 * 0.5);
  EXPECT_EQ(cost.on_demand.method, "2 machines x time x 0.5 + 2 machines x time x 3 USD an hour");
  // This machine is one machine, whatever a virtual cluster would be.
  cluster.fabric = FabricKind::kProcess;
  EXPECT_DOUBLE_EQ(cost_of(config, cluster, 1, 3600).on_demand.value, 0.5);
}

}  // namespace
}  // namespace tutti
