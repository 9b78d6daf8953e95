// The exports' text. That other programs read it is checked by readers of their own, in
// readback_test.py.
#include "testbed/exports.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/testbed/comparison.h"

namespace tutti {
namespace {

using nlohmann::json;
using testing_support::read_back;
using testing_support::small_comparison;

TEST(ChromeTrace, OverlappingIntervalsGetThreadsOfTheirOwn) {
  const json trace = json::parse(chrome_trace(read_back(small_comparison())));
  std::map<std::string, int> thread_of;
  for (const json& event : trace["traceEvents"])
    if (event["ph"] == "X") thread_of[event["name"]] = event["tid"];
  EXPECT_EQ(thread_of.size(), 3u);
  EXPECT_NE(thread_of["compute"], thread_of["communicate"]);
  EXPECT_EQ(thread_of["compute"], thread_of["wait"]) << "it begins when the other has ended";
}

TEST(Csv, UnknownValuesAreEmptyAndNamesQuoted) {
  Comparison comparison = read_back(small_comparison());
  comparison.strategies[0].name = "a \"b\", c\nd";
  const std::string curves = csv_of_curves(comparison);
  const std::string name = "\"a \"\"b\"\", c\nd\"";
  EXPECT_NE(curves.find(name + ",1,evaluation,1,10,,0.5,100.0,2.0,0.5\r\n"), std::string::npos)
      << curves;
  EXPECT_NE(curves.find(name + ",1,evaluation,2,20,,1.0,200.0,,\r\n"), std::string::npos) << curves;
  EXPECT_NE(curves.find(name + ",1,training,2,20,,1.0,,1.5,\r\n"), std::string::npos) << curves;
  EXPECT_TRUE(csv_of_strategies(comparison).starts_with("name,kind,fabric,workers,"));
}

}  // namespace
}  // namespace tutti
