// What `tutti bench advise` makes of advice and trainings.
#include "cli/advice_study.h"

#include <gtest/gtest.h>

namespace tutti {
namespace {

AdvisedTraining training(const std::string& name, double predicted_s, double measured_s) {
  AdvisedTraining result;
  result.name = name;
  result.predicted_s = predicted_s;
  result.predicted_step_s = predicted_s / 10;
  result.measured_s = measured_s;
  result.measured_step_s = measured_s / 10;
  result.error = 0.1;
  return result;
}

TEST(AdviceStudy, OrdersPairsThatDifferEnough) {
  // The first two differ by less than a tenth; of the other five pairs one is the wrong way round.
  const std::vector<AdvisedTraining> all = {training("a", 1.0, 1.00), training("b", 0.9, 1.05),
                                            training("c", 3.0, 2.00), training("d", 2.5, 4.00)};
  const Order order = order_of(all);
  EXPECT_EQ(order.pairs, 5);
  EXPECT_EQ(order.right, 4);
  EXPECT_DOUBLE_EQ(order.tau(), 3.0 / 5);
  EXPECT_DOUBLE_EQ(Order{}.tau(), 1);
}

TEST(AdviceStudy, RegretIsWhatTheFirstChoiceCosts) {
  EXPECT_NEAR(*regret_of({training("a", 1, 1.2), training("b", 2, 1.0)}), 0.2, 1e-12);
  EXPECT_EQ(*regret_of({training("a", 1, 1.0), training("b", 2, 1.2)}), 0);
  AdvisedTraining left_out = training("a", 1, 5);
  left_out.left_out = "too much traffic";
  EXPECT_EQ(*regret_of({left_out, training("b", 2, 1.0)}), 0);
  EXPECT_FALSE(regret_of({left_out}));
}

TEST(AdviceStudy, SumsUpWhatCounts) {
  AdviceStudy study;
  AdvisedTraining missed = training("c", 1, 1);
  missed.measured_s.reset();
  missed.left_out = "no seed reached the target";
  study.add("task", 1e9, {}, {training("a", 1.1, 1.0), training("b", 1.6, 2.0), missed});
  const nlohmann::json record = study.summary(true);
  EXPECT_EQ(record["trainings"], 2);
  EXPECT_EQ(record["left_out"], 1);
  EXPECT_NEAR(record["time_error_mean"].get<double>(), 0.15, 1e-12);
  EXPECT_NEAR(record["step_error_worst"].get<double>(), 0.2, 1e-12);
  EXPECT_EQ(record["within_interval"], 0);  // 10 % was said; the first was off by a little more
  EXPECT_EQ(record["first_right"], 1);
  EXPECT_EQ(record["questions"][0]["strategies"].size(), 3);
}

}  // namespace
}  // namespace tutti
