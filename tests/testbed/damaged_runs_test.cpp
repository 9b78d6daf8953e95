// Comparisons of run folders that are damaged: cut off, changed, or with files missing.
#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "testbed/report.h"
#include "testbed/table.h"
#include "tests/testbed/summaries.h"

namespace tutti {
namespace {

class DamagedRuns : public SummaryTest {};

// The writer of the record was killed: whole lines count, and what is missing is reported.
TEST_F(DamagedRuns, AreReadAsFarAsTheirSeriesGoes) {
  const std::string run = add("ring", {.settings = kRing, .qualities = {0.5, 0.9}});
  const std::string series = read_file(run + "/series.csv");
  for (const size_t cut : {size_t{3}, size_t{9}, series.size() - 40, series.size()}) {
    write_file(run + "/series.csv", series.substr(0, series.size() - cut));
    const Comparison made = summarise_runs(folders_);
    const json result = json_of(made);
    const json row = result["strategies"][0];
    EXPECT_EQ(row["status"], "done");
    EXPECT_LT(row["series"][0]["loss"].size(), 20u);
    ASSERT_EQ(row["missing"].size(), 1u);
    EXPECT_NE(row["missing"][0].get<std::string>().find(run + "/series.csv"), std::string::npos);
    EXPECT_NE(comparison_table(made, {.columns = 4000}).find("missing"), std::string::npos);
  }
}

// Each value of a record in turn is replaced, and bytes of files are changed or cut off. Every
// refusal must name the file and say what to do.
TEST_F(DamagedRuns, NeverShowTheParsersWords) {
  const std::string run = add("ring", {.settings = kRing, .qualities = {0.5, 0.9}});
  size_t refused = 0;
  const auto read = [&](const std::string& what) {
    try {
      const Comparison made = summarise_runs(folders_);
      comparison_table(made, {});
      comparison_csv(made);
      report_html(made);
    } catch (const Error& error) {
      ++refused;
      const std::string said = error.what();
      EXPECT_EQ(said.find("json.exception"), std::string::npos) << what << ": " << said;
      EXPECT_NE(said.find(run), std::string::npos) << what << ": " << said;
      EXPECT_NE(said.find("; "), std::string::npos) << what << ": " << said;
    } catch (const std::exception& error) {
      ADD_FAILURE() << what << ": " << error.what();
    }
  };
  const std::string text = read_file(run + "/run.json"), series = read_file(run + "/series.csv");
  const json whole = json::parse(text), flat = whole.flatten();  // must outlive items()
  for (const auto& [pointer, value] : flat.items())
    for (json::json_pointer at(pointer); !at.empty(); at = at.parent_pointer())
      for (const json& other : {json("x"), json(-1), json::array({1})}) {
        json changed = whole;
        changed[at] = other;
        write_file(run + "/run.json", changed.dump());
        read(pointer + " = " + other.dump());
        if (at != json::json_pointer(pointer)) break;  // one replacement is enough for inner values
      }
  std::mt19937 random(1);
  for (int i = 0; i < 60; ++i) {
    std::string bytes = text, lines = series;
    bytes[random() % bytes.size()] = static_cast<char>(random());
    lines[random() % lines.size()] = static_cast<char>(random());
    write_file(run + "/run.json", i % 3 == 0 ? text.substr(0, random() % text.size()) : bytes);
    write_file(run + "/series.csv", series);
    read("bytes of run.json");
    write_file(run + "/run.json", text);
    if (i % 3 == 0) lines = series.substr(0, random() % series.size());
    write_file(run + "/series.csv", lines);
    read("bytes of series.csv");
  }
  EXPECT_GT(refused, 100u);
}

TEST_F(DamagedRuns, AreNamed) {
  const std::string run = add("ring", {.settings = kRing, .qualities = {0.5}});
  const std::string whole = read_file(run + "/run.json");
  const auto expect = [&](const std::string& file, const std::string& text,
                          const std::string& part) {
    const std::string before = read_file(run + "/" + file);
    write_file(run + "/" + file, text);
    const std::string said = refusal();
    EXPECT_NE(said.find(run + "/" + file), std::string::npos) << said;
    EXPECT_NE(said.find(part), std::string::npos) << said;
    write_file(run + "/" + file, before);
  };
  expect("run.json", whole.substr(0, whole.size() / 2), "is damaged: it is not JSON");
  json other = json::parse(whole);
  other["schema"] = 3;
  expect("run.json", other.dump(), "or run the job again with this one");
  other = json::parse(whole);
  other.erase("evaluations");
  expect("run.json", other.dump(), "\"evaluations\" is missing");
  // Otherwise a comparison with this record would be written, and then refused by `report`.
  for (const json& interval : {json::array({"wait", 2, 1}), json::array({"wait", "", 1}), json()}) {
    other = json::parse(whole);
    other["timeline"] = json::array(
        {{{"rank", 0}, {"intervals", json::array({json::array({"wait", 0, 1}), interval})}}});
    expect("run.json", other.dump(), "\"timeline[0].intervals[1]\" is");
  }
  expect("series.csv", "step,time_s,loss,rate,samples\n1,2\n", "line 2 cannot be read");
  expect("series.csv", "step,time\n", "does not name the columns");
  expect("job.toml", "[task]\nepoch = 3\n", "did you mean 'epochs'?");
  std::filesystem::remove(run + "/run.json");
  EXPECT_NE(refusal().find("has no run.json"), std::string::npos) << refusal();
  folders_ = {folder_ / "nowhere"};
  EXPECT_NE(refusal().find("no such folder"), std::string::npos) << refusal();
}

}  // namespace
}  // namespace tutti
