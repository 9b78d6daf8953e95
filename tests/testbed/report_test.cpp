// The page: safe whatever the names are, self-contained, bounded in size. How it looks and acts is
// tested in a browser (browser_test.py).
#include "testbed/report.h"

#include <gtest/gtest.h>

#include "testbed/network_picture.h"
#include "testbed/report_data.h"
#include "tests/testbed/comparison.h"

namespace tutti {
namespace {

using nlohmann::json;
using testing_support::read_back;
using testing_support::small_comparison;

TEST(JsonForScript, CannotLeaveItsElementAndReadsBackTheSame) {
  const json value = {{"</script><script>x", "<!-- \xe2\x80\xa8 \xe2\x80\xa9 <img onerror=x>"},
                      {"number", 0.1},
                      {"snow", "\xe2\x98\x83"}};
  const std::string text = json_for_script(value);
  EXPECT_EQ(text.find('<'), std::string::npos) << text;
  EXPECT_EQ(text.find("\xe2\x80\xa8"), std::string::npos) << text;
  EXPECT_EQ(text.find("\xe2\x80\xa9"), std::string::npos) << text;
  EXPECT_EQ(json::parse(text), value);
  EXPECT_NO_THROW(json::parse(json_for_script("not UTF-8: \xff\xfe")));
}

TEST(Report, NeedsNothingOutsideOfItself) {
  const std::string page = report_html(read_back(small_comparison()));
  for (const char* outside :
       {" src=", "@import", "url(http", "sourceMappingURL", "<link rel=\"sty"})
    EXPECT_EQ(page.find(outside), std::string::npos) << outside;
  EXPECT_NE(page.find("default-src 'none'"), std::string::npos);
  EXPECT_NE(page.find("Chart.js v"), std::string::npos) << "its licence asks for the notice";
  EXPECT_EQ(page.find(kReportDataMark), std::string::npos);
  EXPECT_EQ(page.find("<!-- inline"), std::string::npos);
}

TEST(ReportData, AMillionPointsBecomeFewAndKeepTheirExtremes) {
  json comparison = small_comparison();
  json& series = comparison["strategies"][0]["series"][0];
  for (const char* key : {"step", "time_s", "samples", "loss"}) series[key] = json::array();
  for (int i = 0; i < 1'000'000; ++i) {
    for (const char* key : {"step", "time_s", "samples"}) series[key].push_back(i);
    series["loss"].push_back(i == 777'777 ? 99.5 : 1.0 / (1 + i));
  }
  const json data = report_data(read_back(comparison));
  const json& losses = data["strategies"][0]["series"][0]["loss"];
  EXPECT_LE(losses.size(), kMostPointsPerSeries);
  EXPECT_NE(std::find(losses.begin(), losses.end(), json(99.5)), losses.end());
  EXPECT_EQ(data["thinned"]["points"], 1'000'002);
  EXPECT_LT(report_html(read_back(comparison)).size(), 1'000'000u);
}

TEST(ReportData, ManyRunsShareTheBound) {
  json comparison = small_comparison();
  json points = json::array();
  for (int i = 0; i < 300; ++i) points.push_back({{"step", i}, {"quality", 0.001 * (i % 17)}});
  json& curves = comparison["strategies"][0]["curves"] = json::array();
  for (int seed = 0; seed < 2000; ++seed) curves.push_back({{"seed", seed}, {"points", points}});
  const json data = report_data(read_back(comparison));
  EXPECT_LE(data["thinned"]["kept"], kMostPoints);
  EXPECT_EQ(data["strategies"][0]["curves"].size(), 2000u) << "no run is left out";
}

TEST(ReportData, ALongTimelineIsJoinedAndItsTimeKept) {
  json comparison = small_comparison();
  json intervals = json::array();
  for (int i = 0; i < 5'000; ++i) intervals.push_back({i % 2 ? "wait" : "compute", i, i + 1});
  json& timeline = comparison["strategies"][0]["timeline"] = json::array();
  for (int rank = 0; rank < 100; ++rank)
    timeline.push_back({{"rank", rank}, {"intervals", intervals}});
  const json strategy = report_data(read_back(comparison))["strategies"][0];
  EXPECT_EQ(strategy["timeline"].size(), kMostNodesDrawn);
  const json& row = strategy["timeline"][0]["intervals"];
  EXPECT_LE(row.size(), kMostIntervalsPerNode);
  EXPECT_EQ(row.front()[1], 0);
  EXPECT_EQ(row.back()[2], 5'000);
  EXPECT_EQ(strategy["thinned"]["intervals"], true);
  EXPECT_EQ(strategy["thinned"]["timeline_nodes"], 100);
}

double total(const json& links) {
  double sum = 0;
  for (const json& link : links) sum += link[2].get<double>();
  return sum;
}

TEST(NetworkPicture, EveryByteIsDrawnHoweverManyNodes) {
  for (const int workers : {1, 2, 8, 64, 65, 200, 1000}) {
    std::vector<RecordedNode> nodes;
    std::vector<RecordedLink> links;
    for (int rank = 0; rank < workers + 2; ++rank) {
      nodes.emplace_back();
      nodes.back().rank = rank;
      nodes.back().role = rank < workers ? "worker" : "server";
      if (rank < workers) links.push_back({rank, workers + rank % 2, 10});
    }
    const json picture = network_picture(nodes, links, workers, 64);
    EXPECT_LE(picture["nodes"].size(), 66u);
    EXPECT_EQ(picture["grouped"], workers + 2 > 64) << workers;
    EXPECT_EQ(total(picture["links"]), 10.0 * workers);
    int count = 0, servers = 0;
    for (const json& node : picture["nodes"]) {
      count += node["count"].get<int>();
      servers += node["role"] == "server";
    }
    EXPECT_EQ(count, workers + 2);
    EXPECT_EQ(servers, 2) << "servers are drawn one by one";
  }
}

TEST(NetworkPicture, RanksWithoutARecordAreDrawnToo) {
  EXPECT_EQ(network_picture({}, {}, 3, 64)["nodes"].size(), 3u);
  EXPECT_EQ(network_picture({}, {{0, 9, 1}}, 2, 64)["nodes"].size(), 3u);
}

}  // namespace
}  // namespace tutti
