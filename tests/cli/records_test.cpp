// The newest records of benchmarks that are kept with the program meet their targets. Nothing is
// measured here: who changes what they measured measures it again and commits the record.
#include <gtest/gtest.h>

#include "tests/support/programs.h"

namespace tutti {
namespace {

using namespace testing_support;
using nlohmann::json;

// `tutti bench here`: the order of solo, direct and ring is right wherever they differ by more than
// 10 %.
TEST(Records, OfThisMachineHaveEveryOrderRight) {
  const json record = json_in(std::string(TUTTI_SOURCE) + "/bench/records/here.json");
  ASSERT_TRUE(record.is_object()) << "run `tutti bench here --out bench/records/here.json`";
  EXPECT_GE(record["tasks"].size() + record["left_out"].size(), 8u) << "all reference tasks";
  EXPECT_GE(record["tasks"].size(), 5u);
  EXPECT_GE(record["rounds"].get<int>(), 3);
  int pairs = 0;
  for (const json& task : record["tasks"]) {
    const json& cases = task["cases"];
    ASSERT_EQ(cases.size(), 3u) << task;
    for (const json& faster : cases)
      for (const json& slower : cases) {
        const auto of = [](const json& row, const char* key) { return row[key].get<double>(); };
        if (of(faster, "measured_s") * 1.1 >= of(slower, "measured_s")) continue;
        ++pairs;
        EXPECT_LT(of(faster, "predicted_s"), of(slower, "predicted_s"))
            << task["task"] << ": " << faster["strategy"] << " is faster than "
            << slower["strategy"];
      }
  }
  EXPECT_EQ(record["pairs"], pairs);
  EXPECT_EQ(record["pairs_in_order"], pairs);
  EXPECT_GT(pairs, 0);
}

}  // namespace
}  // namespace tutti
