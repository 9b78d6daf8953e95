// Headlines in words, and the smoothed loss that pages draw.
#include "testbed/question.h"

#include <gtest/gtest.h>

#include <cmath>

#include "testbed/report_data.h"
#include "testbed/smooth.h"
#include "tests/testbed/comparison.h"

namespace tutti {
namespace {

using nlohmann::json;
using testing_support::read_back;
using testing_support::small_comparison;

std::string question(json changes, size_t strategies = 2) {
  json made = small_comparison();
  while (made["strategies"].size() < strategies) {
    made["strategies"].push_back(made["strategies"][0]);
    made["strategies"].back()["name"] = "tree";
  }
  made.merge_patch(changes);
  return question_of(read_back(made));
}

TEST(Question, SaysWhatIsTrainedAndWhere) {
  const json task = {{"data", "fashion-mnist"}, {"model", "lenet"}};
  const json cluster = {{"workers", 8}, {"network", "1 Gbit/s"}, {"fabric", "virtual"}};
  EXPECT_EQ(question({{"task", task}, {"cluster", cluster}}),
            "Which architecture trains LeNet on Fashion-MNIST fastest on 8 nodes at 1 Gbit/s?");
  EXPECT_EQ(question({{"task", task}, {"cluster", {{"workers", 2}, {"fabric", "process"}}}}),
            "Which architecture trains LeNet on Fashion-MNIST fastest on 2 processes?");
  EXPECT_EQ(question({{"task", {{"data", "csv"}, {"model", "mlp"}, {"file", "iris.csv"}}}}),
            "Which architecture trains an MLP on iris.csv fastest?");
  EXPECT_EQ(question({{"task", {{"data", "new"}, {"model", "newer"}, {"target", nullptr}}}}),
            "Which architecture trains newer on new best?")
      << "kinds of another version keep their names";
  EXPECT_EQ(question({{"task", task}}, 1), "How fast does ring train LeNet on Fashion-MNIST?");
  EXPECT_EQ(question(json::object()), "Which architecture trains this model fastest?");
}

TEST(Smooth, FollowsTheMeanAndForgets) {
  EXPECT_EQ(smooth({}), std::vector<double>());
  EXPECT_EQ(smooth({3, 1}), (std::vector<double>{3, 1})) << "too short to be smoothed";
  std::vector<double> values;
  for (int i = 0; i < 1000; ++i) values.push_back((i < 500 ? 2 : 1) + (i % 2 ? 0.5 : -0.5));
  const std::vector<double> smoothed = smooth(values);
  // Of 100 steps the average takes in, neighbours that differ by 1 leave a hundredth.
  EXPECT_NEAR(smoothed[499], 2, 0.02);
  EXPECT_NEAR(smoothed[999], 1, 0.02);
  EXPECT_NEAR(smoothed[20], 2, 0.05) << "the first value has no more weight than others";
}

TEST(Smooth, LeavesOutWhatIsNoNumber) {
  std::vector<double> values(100, 1.0);
  values[50] = NAN;
  values[51] = INFINITY;
  const std::vector<double> smoothed = smooth(values);
  EXPECT_TRUE(std::isnan(smoothed[50]) && std::isnan(smoothed[51]));
  EXPECT_DOUBLE_EQ(smoothed[52], 1);
}

TEST(Smooth, ChoosesPlacesThatAreEvenlyApart) {
  EXPECT_EQ(evenly(3, 10), (std::vector<size_t>{0, 1, 2}));
  EXPECT_EQ(evenly(101, 5), (std::vector<size_t>{0, 25, 50, 75, 100}));
  EXPECT_TRUE(evenly(0, 5).empty());
  const json data = report_data(read_back(small_comparison()));
  EXPECT_EQ(data["strategies"][0]["series"][0]["smooth"]["loss"].size(), 2u);
  EXPECT_EQ(data["question"], "How fast does ring train this model?");
}

}  // namespace
}  // namespace tutti
