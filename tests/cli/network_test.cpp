// Predictions against measurements: 2 to 8 nodes, 100 Mbit/s and 1 Gbit/s, 1 to 32 MB.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "fabric/process/namespaced_network.h"
#include "tests/support/programs.h"

namespace tutti {
namespace {

using namespace testing_support;

TEST(Network, PredictionsAreCloseAndInTheRightOrder) {
  if (const std::string reason = process::NamespacedNetwork::why_not(); !reason.empty())
    GTEST_SKIP() << reason;
  // What else the machine does for a moment spoils single cases. A prediction that is wrong is
  // wrong in every attempt: only pairs that come out in another order each time count as such.
  double least_error = 1;
  std::set<std::string> out_of_order;
  for (int attempt = 0; attempt < 3; ++attempt) {
    const Ended ended =
        Subprocess({"bench", "network", "--json", "--quiet", "--rounds", "1"}).wait(400);
    ASSERT_EQ(ended.exit_code, 0) << ended.err;
    const nlohmann::json result = nlohmann::json::parse(ended.out, nullptr, false);
    ASSERT_TRUE(result.is_object()) << ended.out;
    // 3 node counts x 2 bandwidths x 3 sizes x 4 topologies, each measured or left out for a reason
    EXPECT_EQ(result["cases"].size() + result["left_out"].size(), 72u);
    EXPECT_GE(result["cases"].size(), 36u) << result["left_out"].dump(1);
    least_error = std::min(least_error, result["mean_absolute_error"].get<double>());
    std::set<std::string> wrong;
    for (const auto& pair : result["out_of_order"])
      if (attempt == 0 || out_of_order.contains(pair.dump())) wrong.insert(pair.dump());
    out_of_order = wrong;
    if (least_error <= 0.08 && out_of_order.empty()) break;
  }
  EXPECT_LE(least_error, 0.08);
  for (const std::string& pair : out_of_order) ADD_FAILURE() << "in the wrong order: " << pair;
}

}  // namespace
}  // namespace tutti
