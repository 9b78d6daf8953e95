// The footprint of trainings that are described: the published ones, and what makes no sense.
#include "jobs/training_footprint.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"

namespace tutti {
namespace {

constexpr double kPounds = 453.59237;  // grams

// Strubell, Ganesh and McCallum, "Energy and Policy Considerations for Deep Learning in NLP", ACL
// 2019, table 3: power and hours, and the kWh (with a PUE of 1.58) and lb of CO2e that they print.
struct Published {
  const char* model;
  double watts, hours, kwh, pounds;
};
constexpr Published kPublished[] = {
    {"Transformer (base)", 1415.78, 12, 27, 26},
    {"Transformer (big)", 1515.43, 84, 201, 192},
    {"ELMo", 517.66, 336, 275, 262},
    // The table rounds its time to 79 hours; 1,507 kWh are those of 79.2.
    {"BERT (base)", 12041.51, 79.2, 1507, 1438},
};

TEST(TrainingFootprint, IsThatOfThePublishedTrainings) {
  for (const Published& row : kPublished) {
    FootprintConfig config;
    config.intensity = parse_intensity("0.954 lb/kWh");
    const TrainingFootprint footprint =
        footprint_of({.watts = row.watts, .hours = row.hours, .pue = 1.58}, config);
    EXPECT_EQ(std::round(footprint.kwh), row.kwh) << row.model;
    EXPECT_EQ(std::round(footprint.co2e_grams.value / kPounds), row.pounds) << row.model;
  }
}

TEST(TrainingFootprint, RefusesASpotPriceAboveThePrice) {
  FootprintConfig config;
  config.price = 1;
  EXPECT_NO_THROW(footprint_of({.watts = 1, .hours = 1, .spot_price = 1}, config));
  EXPECT_THROW(footprint_of({.watts = 1, .hours = 1, .spot_price = 2}, config), ConfigError);
}

// All that is counted multiplies: machines, trainings, hours.
TEST(TrainingFootprint, GrowsWithEverythingThatIsDoneMore) {
  FootprintConfig config;
  config.country = "USA";
  config.price = 2;
  const TrainingDescription once{.watts = 1000, .hours = 1, .spot_price = 0.5};
  const TrainingFootprint one = footprint_of(once, config);
  EXPECT_DOUBLE_EQ(one.kwh, 1);
  EXPECT_DOUBLE_EQ(one.co2e_grams.value, 369);
  EXPECT_DOUBLE_EQ(one.cost, 2);
  EXPECT_DOUBLE_EQ(one.spot_cost, 0.5);
  EXPECT_NEAR(one.car_km, 369.0 / 400 * 1.609344, 1e-12);
  TrainingDescription many = once;
  many.machines = 8;
  many.trainings = 1000;
  const TrainingFootprint all = footprint_of(many, config);
  EXPECT_DOUBLE_EQ(all.kwh, 8000);
  EXPECT_DOUBLE_EQ(all.cost, 16000);
  EXPECT_DOUBLE_EQ(all.spot_cost, 4000);
  EXPECT_DOUBLE_EQ(all.car_km, 8000 * one.car_km);
}

TEST(TrainingFootprint, ReadsIntensitiesWithTheirUnits) {
  EXPECT_DOUBLE_EQ(parse_intensity("432"), 432);
  EXPECT_DOUBLE_EQ(parse_intensity("432 g/kWh"), 432);
  EXPECT_DOUBLE_EQ(parse_intensity("0.4kg/kWh"), 400);
  EXPECT_DOUBLE_EQ(parse_intensity("1 lb/kWh"), kPounds);
  for (const char* wrong : {"", "g/kWh", "1 t/kWh", "-1", "nan", "inf", "1e400", "3 g/kWh x"})
    EXPECT_THROW(parse_intensity(wrong), ConfigError) << wrong;
}

TEST(TrainingFootprint, NamesTheNumberThatMakesNoSense) {
  const auto key_of = [](const TrainingDescription& training) -> std::string {
    try {
      footprint_of(training, {});
    } catch (const ConfigError& error) {
      return error.key();
    }
    return "";
  };
  const TrainingDescription good{.watts = 100, .hours = 1};
  EXPECT_EQ(key_of(good), "");
  TrainingDescription bad = good;
  bad.watts = -1;
  EXPECT_EQ(key_of(bad), "watts");
  bad = good;
  bad.hours = NAN;
  EXPECT_EQ(key_of(bad), "hours");
  bad = good;
  bad.pue = 0.9;
  EXPECT_EQ(key_of(bad), "pue");
  bad = good;
  bad.trainings = 0;
  EXPECT_EQ(key_of(bad), "trainings");
  bad = good;
  bad.machines = 1e300;
  bad.hours = 1e300;
  EXPECT_EQ(key_of(bad), "watts");
}

}  // namespace
}  // namespace tutti
