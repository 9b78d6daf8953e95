// Tests the reported position of a run, also when it resumes another or its workers are not in
// step.
#include "jobs/progress.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "jobs/resolve.h"
#include "tests/support/jobs.h"

namespace tutti {
namespace {

using namespace testing_support;
using nlohmann::json;

// Returns what programs are told after this step of the first worker.
json told(const Course& course, const StepRow& row) {
  testing::internal::CaptureStderr();
  Progress progress(ProgressStyle::kJson, "run", course, "accuracy");
  progress.step(row);
  progress.evaluation({});
  const std::string text = testing::internal::GetCapturedStderr();
  return json::parse(text.substr(0, text.find('\n')));
}

TEST(ProgressPosition, IsTheStepWhereAllAreInStep) {
  const json line = told({.steps = 2, .samples = 130}, {.step = 1, .samples = 128});
  EXPECT_EQ(line["step"], 1);
  EXPECT_EQ(line["total"], 2);
}

TEST(ProgressPosition, NeverPassesTheEnd) {
  const Course course{.steps = 376, .samples = 37600, .in_step = false};
  EXPECT_EQ(told(course, {.step = 410, .samples = 30000})["step"], 300);
  EXPECT_EQ(told(course, {.step = 410, .samples = 37700})["step"], 376);
  const Course late{.steps = 376, .samples = 37600};  // steps do without late workers
  EXPECT_EQ(told(late, {.step = 410, .samples = 30000})["step"], 300);
}

TEST(ProgressPosition, BeginsWhereTheRunBegins) {
  const Course course{.steps = 100, .samples = 1000, .steps_before = 40, .samples_before = 400};
  testing::internal::CaptureStderr();
  Progress progress(ProgressStyle::kJson, "run", course, "accuracy");
  progress.evaluation({});
  EXPECT_NE(testing::internal::GetCapturedStderr().find("\"step\":40,"), std::string::npos);
}

TEST(PredictedSamples, AreThoseOfTheSteps) {
  const auto predicted = [](const Settings& more) {
    return resolve(load_job("", logistic_task() + more)).plan.samples;
  };
  const int64_t all = predicted({});
  EXPECT_GT(all, 37 * 10);
  EXPECT_EQ(predicted({"task.epochs=3"}), 3 * all);
  EXPECT_EQ(predicted({"task.max_steps=2"}), 2 * 37);
  EXPECT_EQ(predicted({"task.epochs=3", "task.max_steps=12"}), all + 37);
}

}  // namespace
}  // namespace tutti
