// What this machine spends on its work, and what a person makes of such figures.
#include "jobs/spending.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ctime>

#include "jobs/perspective.h"

namespace tutti {
namespace {

TEST(Perspective, SaysWhatAPersonCanPicture) {
  EXPECT_EQ(in_perspective(
                {.kwh = 2.5, .co2e_grams = 1000, .cost = 3, .spot_cost = 1, .currency = "EUR"}),
            "2.5 kWh, 1 kg CO2e (a car makes as much in 4.02 km), 1 to 3 EUR");
  EXPECT_EQ(in_perspective({.kwh = 1.37e-4,
                            .co2e_grams = 0.0652,
                            .cost = 1.45e-4,
                            .spot_cost = {},
                            .currency = "USD"}),
            "137 mWh, 65.2 mg CO2e (a car makes as much in 26.2 cm), 0.000145 USD");
  EXPECT_EQ(mass_text(999.9), "1 kg") << "rounded before the unit is chosen";
  EXPECT_EQ(kwh_text(0), "0 kWh");
}

TEST(Spending, CountsThisProcessAndItsChildren) {
  FootprintConfig config;
  config.tdp_watts = 100;
  config.pue = 2;
  Spending spending(config);
  constexpr double kWork_s = 0.1;  // by the clock of the process, however busy the machine is
  const pid_t child = fork();
  if (child == 0) {
    while (static_cast<double>(std::clock()) < kWork_s * CLOCKS_PER_SEC) continue;
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  const Spent spent = spending.so_far();
  EXPECT_GE(spent.cpu_s, 0.9 * kWork_s);
  EXPECT_GE(spent.wall_s, 0.9 * kWork_s);
  EXPECT_GT(spent.joules, 0);
  EXPECT_DOUBLE_EQ(spent.kwh, 2 * spent.joules / 3.6e6);
  const Spent twice = spent + spent;
  EXPECT_DOUBLE_EQ(twice.joules, 2 * spent.joules);
  EXPECT_EQ(twice.method, spent.method);
  EXPECT_NE(spent_text(twice).find("CO2e"), std::string::npos);
}

}  // namespace
}  // namespace tutti
