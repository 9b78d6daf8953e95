#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "optimizers/optimizer.h"

namespace tutti {
namespace {

OptimizerConfig config_of(ScheduleKind schedule) {
  OptimizerConfig config;
  config.lr = 0.2;
  config.schedule.kind = schedule;
  return config;
}

TEST(Schedule, ConstantStays) {
  const Schedule schedule(config_of(ScheduleKind::kConstant), 128, 10);
  for (const double epoch : {0.0, 0.5, 3.0, 9.99, 10.0})
    EXPECT_DOUBLE_EQ(schedule.rate(epoch), 0.2);
  EXPECT_EQ(schedule.global_batch(7), 128);
}

TEST(Schedule, StepFallsEveryStepEpochs) {
  OptimizerConfig config = config_of(ScheduleKind::kStep);
  config.schedule.step_epochs = 2;
  config.schedule.step_factor = 0.1;
  const Schedule schedule(config, 128, 10);
  EXPECT_DOUBLE_EQ(schedule.rate(0), 0.2);
  EXPECT_DOUBLE_EQ(schedule.rate(1.999), 0.2);
  EXPECT_DOUBLE_EQ(schedule.rate(2), 0.02);
  EXPECT_DOUBLE_EQ(schedule.rate(5), 0.002);
  EXPECT_EQ(schedule.global_batch(9), 128);
}

// Epochs are step / steps per epoch: the division must not push a step below the boundary.
TEST(Schedule, StepFallsAtTheFirstStepOfTheEpochWhateverTheRounding) {
  OptimizerConfig config = config_of(ScheduleKind::kStep);
  config.schedule.step_epochs = 0.1;
  const Schedule schedule(config, 128, 10);
  for (int k = 0; k < 30; ++k) EXPECT_NEAR(schedule.rate(k * 0.1) / 0.2, std::pow(0.5, k), 1e-12);
}

TEST(Schedule, CosineEndsAtItsFraction) {
  OptimizerConfig config = config_of(ScheduleKind::kCosine);
  config.schedule.final_fraction = 0.1;
  const Schedule schedule(config, 128, 8);
  EXPECT_DOUBLE_EQ(schedule.rate(0), 0.2);
  EXPECT_NEAR(schedule.rate(4), 0.2 * 0.55, 1e-12);
  EXPECT_NEAR(schedule.rate(2), 0.2 * (0.1 + 0.9 * (1 + std::cos(std::numbers::pi / 4)) / 2),
              1e-12);
  EXPECT_NEAR(schedule.rate(8), 0.02, 1e-12);
  EXPECT_NEAR(schedule.rate(9), 0.02, 1e-12);
  for (double epoch = 0; epoch < 8; epoch += 0.125)
    EXPECT_GT(schedule.rate(epoch), schedule.rate(epoch + 0.125));
}

// The run ends after a number of steps, in the middle of an epoch or before all epochs are done.
TEST(Schedule, CosineEndsWhereTheRunDoes) {
  OptimizerConfig config = config_of(ScheduleKind::kCosine);
  config.schedule.final_fraction = 0.1;
  Schedule schedule(config, 128, 8);
  schedule.end_at(2.5);
  EXPECT_NEAR(schedule.rate(1.25), 0.2 * 0.55, 1e-12);
  EXPECT_NEAR(schedule.rate(2.5), 0.02, 1e-12);
  EXPECT_NEAR(schedule.rate(7), 0.02, 1e-12);
  schedule.end_at(8);  // the earlier end stays
  EXPECT_NEAR(schedule.rate(1.25), 0.2 * 0.55, 1e-12);
}

TEST(Schedule, WarmUpRisesLinearlyFromZero) {
  for (const ScheduleKind kind :
       {ScheduleKind::kConstant, ScheduleKind::kCosine, ScheduleKind::kGrowBatch}) {
    OptimizerConfig config = config_of(kind);
    config.schedule.warmup_epochs = 2;
    const Schedule schedule(config, 128, 10);
    for (const double epoch : {0.0, 0.5, 1.0, 1.5, 2.0})
      EXPECT_NEAR(schedule.rate(epoch), 0.1 * epoch, 1e-12) << word_of(kind);
  }
}

TEST(Schedule, WarmUpAsLongAsTheRunIsStillFinite) {
  OptimizerConfig config = config_of(ScheduleKind::kCosine);
  config.schedule.warmup_epochs = 10;
  const Schedule schedule(config, 128, 10);
  for (const double epoch : {0.0, 5.0, 10.0, 11.0})
    EXPECT_TRUE(std::isfinite(schedule.rate(epoch)));
}

TEST(Schedule, GrowingTheBatchKeepsTheRate) {
  OptimizerConfig config = config_of(ScheduleKind::kGrowBatch);
  config.schedule.step_epochs = 2;
  config.schedule.step_factor = 0.5;
  const Schedule schedule(config, 100, 10);
  EXPECT_EQ(schedule.global_batch(0), 100);
  EXPECT_EQ(schedule.global_batch(1), 100);
  EXPECT_EQ(schedule.global_batch(2), 200);
  EXPECT_EQ(schedule.global_batch(9), 1600);
  for (const double epoch : {0.0, 2.0, 9.0}) EXPECT_DOUBLE_EQ(schedule.rate(epoch), 0.2);
}

TEST(Schedule, AnEndlesslyGrowingBatchDoesNotOverflow) {
  OptimizerConfig config = config_of(ScheduleKind::kGrowBatch);
  config.schedule.step_epochs = 0.001;
  config.schedule.step_factor = 0.001;
  const Schedule schedule(config, 100, 1000000);
  int64_t before = 0;
  for (int64_t epoch = 0; epoch < 1000000; epoch = epoch * 2 + 1) {
    EXPECT_GE(schedule.global_batch(epoch), before);
    before = schedule.global_batch(epoch);
  }
}

TEST(Schedule, LinearScalingFollowsTheInitialBatch) {
  OptimizerConfig config = config_of(ScheduleKind::kGrowBatch);
  config.schedule.base_batch = 64;
  const Schedule schedule(config, 256, 10);
  EXPECT_DOUBLE_EQ(schedule.rate(0), 0.8);
  EXPECT_DOUBLE_EQ(schedule.rate(5), 0.8);
  EXPECT_GT(schedule.global_batch(5), 256);
}

}  // namespace
}  // namespace tutti
