// Predictions against measurements: 2 to 8 nodes, 100 Mbit/s and 1 Gbit/s, 1 to 32 MB.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "fabric/process/namespaced_network.h"
#include "tests/support/programs.h"

namespace tutti {
namespace {

using namespace testing_support;

nlohmann::json measured(const Arguments& arguments) {
  const Ended ended = Subprocess(arguments).wait(400);
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  return nlohmann::json::parse(ended.out, nullptr, false);
}

TEST(Network, PredictionsAreCloseAndInTheRightOrder) {
  if (const std::string reason = process::NamespacedNetwork::why_not(); !reason.empty())
    GTEST_SKIP() << reason;
  // What else the machine does for a moment spoils single cases. A prediction that is wrong is
  // wrong in every attempt: only pairs that come out in another order each time count as such. Once
  // the error is small, only the numbers of hosts that have such pairs are measured again.
  double least_error = 1;
  std::set<std::string> out_of_order, again;
  for (int attempt = 0; attempt < 3; ++attempt) {
    Arguments arguments = {"bench", "network", "--json", "--quiet", "--rounds", "1"};
    for (const std::string& hosts : again) arguments.push_back("--processes=" + hosts);
    const nlohmann::json result = measured(arguments);
    ASSERT_TRUE(result.is_object());
    // 2 bandwidths x 3 sizes x 4 topologies, each measured or left out for a reason
    EXPECT_EQ(result["cases"].size() + result["left_out"].size(),
              24 * (again.empty() ? 3 : again.size()));
    if (again.empty()) {
      EXPECT_GE(result["cases"].size(), 36u) << result["left_out"].dump(1);
      least_error = std::min(least_error, result["mean_absolute_error"].get<double>());
    }
    // Both solvers have the same model of the network; SimGrid's rounds shares at 1e-5.
    for (const auto& c : result["cases"])
      EXPECT_NEAR(c["predicted_incremental_s"].get<double>() / c["predicted_s"].get<double>(), 1,
                  0.01)
          << c;
    std::set<std::string> wrong;
    again.clear();
    for (const auto& pair : result["out_of_order"]) {
      if (attempt > 0 && !out_of_order.contains(pair.dump())) continue;
      wrong.insert(pair.dump());
      again.insert(pair["nodes"].dump());
    }
    out_of_order = wrong;
    if (least_error <= 0.08 && out_of_order.empty()) break;
    if (least_error > 0.08) again.clear();
  }
  EXPECT_LE(least_error, 0.08);
  for (const std::string& pair : out_of_order) ADD_FAILURE() << "in the wrong order: " << pair;
}

}  // namespace
}  // namespace tutti
