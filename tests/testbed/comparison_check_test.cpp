// What is not a comparison is refused, with the file, the place and what to do.
#include <gtest/gtest.h>

#include "core/error.h"
#include "testbed/report.h"
#include "tests/testbed/comparison.h"

namespace tutti {
namespace {

using nlohmann::json;
using testing_support::small_comparison;

std::string refusal(const json& comparison) {
  try {
    report_html(comparison_of(comparison, "some/compare.json"));
  } catch (const DataError& error) {
    return error.what();
  }
  return "accepted";
}

void expect_refused(const char* place, const json& value, const std::vector<std::string>& parts) {
  json comparison = small_comparison();
  comparison[json::json_pointer(place)] = value;
  const std::string message = refusal(comparison);
  EXPECT_TRUE(message.starts_with("some/compare.json: ")) << place << ": " << message;
  for (const std::string& part : parts)
    EXPECT_NE(message.find(part), std::string::npos) << message << " lacks " << part;
}

TEST(ComparisonCheck, AcceptsWhatIsOneAndWhatLacksOptionalParts) {
  EXPECT_EQ(refusal(small_comparison()), "accepted");
  EXPECT_EQ(refusal({{"schema", 1},
                     {"kind", "comparison"},
                     {"strategies", {{{"name", "x"}, {"status", "failed"}}}}}),
            "accepted");
}

TEST(ComparisonCheck, NamesPlaceAndRemedy) {
  expect_refused("/schema", 2, {"schema 2", "reads schema 1", "compare anew"});
  expect_refused("/kind", "survey", {"is not a comparison", "tutti compare"});
  expect_refused("/strategies", json::array(), {"has no strategies", "tutti compare"});
  expect_refused("/strategies/0/name", 3, {"strategies[0].name is number, not a text"});
  expect_refused("/strategies/0/total_s", "fast", {"strategies[0].total_s is string"});
  expect_refused("/strategies/0/to_target_s/mean", "2", {"strategies[0].to_target_s.mean"});
  expect_refused("/strategies/0/curves/0/points/1/time_s", "1",
                 {"strategies[0].curves[0].points[1].time_s is string, not a number or null"});
  expect_refused("/strategies/0/series/0/loss", {1, 2, 3}, {"2 values, but there are 3 losses"});
  expect_refused("/strategies/0/series/0/loss/1", "x", {"strategies[0].series[0].loss[1]"});
  expect_refused("/strategies/0/timeline/0/intervals/1", {"wait", 2, 1}, {"intervals[1]"});
  expect_refused("/strategies/0/links/0", {0, 1}, {"strategies[0].links[0]"});
  expect_refused("/strategies/0/clients", {{"columns", {"client"}}, {"rows", {{0, 1}}}},
                 {"strategies[0].clients.rows[0]", "a number for each column"});
  expect_refused("/strategies/0/nodes/1", {{"rank", "one"}}, {"strategies[0].nodes[1]"});
  expect_refused("/strategies/0", 5, {"strategies[0] is number, not an object"});
  EXPECT_NE(refusal(json::parse("{\"schema\": 1, ", nullptr, false)).find("not complete JSON"),
            std::string::npos);
  EXPECT_NE(refusal(json::array()).find("is not a comparison"), std::string::npos);
}

// Whatever single value is damaged, the answer is a page or a DataError, nothing else.
TEST(ComparisonCheck, AnyDamageIsAnsweredOrDrawn) {
  const json flat = small_comparison().flatten();
  for (const auto& [place, ignored] : flat.items())
    for (const json& value : {json(), json("text"), json(-1), json(1e300), json::array(),
                              json::object(), json(true), json({1, "x"})}) {
      json comparison = small_comparison();
      comparison[json::json_pointer(place)] = value;
      try {
        report_html(comparison_of(comparison, "file"));
      } catch (const DataError& error) {
        EXPECT_TRUE(std::string(error.what()).starts_with("file: ")) << error.what();
      } catch (const std::exception& error) {
        ADD_FAILURE() << place << " = " << value << ": " << error.what();
      }
    }
}

}  // namespace
}  // namespace tutti
