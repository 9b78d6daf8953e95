// What an earlier build left behind in tests/golden/kept (a job, a run with snapshots of its
// servers, a comparison) is still read, shown, predicted from, repeated, resumed, gone on with and
// reported, with the answers that it gave then (kept/answers).
//
// Virtual times, bytes and counts are compared to the last bit. What follows from arithmetic on
// parameters has a bound: kernels of other processors add in another order.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "fabric/outcome.h"
#include "tests/support/programs.h"

namespace tutti {
namespace {

using namespace testing_support;
using nlohmann::json;

// Values are of the order of 1 and come from some 30 steps with a rate of 0.05. A rounding error is
// 1e-7 of them; Adam may make more of it where a gradient is near zero. A wrong sample or step
// changes them by 1e-2.
constexpr double kParameterBound = 1e-3;
// Of probabilities, which have six digits in the file.
constexpr double kProbabilityBound = 1e-4;

std::vector<std::vector<std::string>> rows_of(const std::string& text) {
  std::vector<std::vector<std::string>> rows;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    rows.emplace_back();
    std::istringstream fields(line);
    for (std::string field; std::getline(fields, field, ',');) rows.back().push_back(field);
  }
  return rows;
}

// Every column of `before` with all its values; there may be others.
void expect_columns(const std::string& now, const std::string& before) {
  const auto is = rows_of(now), was = rows_of(before);
  ASSERT_EQ(is.size(), was.size()) << now;
  for (size_t column = 0; column < was[0].size(); ++column) {
    const auto found = std::find(is[0].begin(), is[0].end(), was[0][column]);
    ASSERT_NE(found, is[0].end()) << was[0][column];
    const auto place = static_cast<size_t>(found - is[0].begin());
    // A row ends with its last value that is known: what follows is empty.
    const auto cell = [](const std::vector<std::string>& row, size_t i) {
      return i < row.size() ? row[i] : std::string();
    };
    for (size_t row = 1; row < was.size(); ++row)
      EXPECT_EQ(cell(is[row], place), cell(was[row], column)) << was[0][column] << ", row " << row;
  }
}

bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789.e-+") == std::string::npos;
}

void expect_near_rows(const std::string& now, const std::string& before) {
  const auto is = rows_of(now), was = rows_of(before);
  ASSERT_EQ(is.size(), was.size()) << now;
  for (size_t row = 0; row < was.size(); ++row) {
    ASSERT_EQ(is[row].size(), was[row].size()) << "row " << row;
    for (size_t i = 0; i < was[row].size(); ++i)
      if (is_number(was[row][i]) && is_number(is[row][i]))
        EXPECT_NEAR(std::stod(is[row][i]), std::stod(was[row][i]), kProbabilityBound)
            << "row " << row << ", column " << i;
      else
        EXPECT_EQ(is[row][i], was[row][i]) << "row " << row << ", column " << i;
  }
}

// A safetensors file: the length of its header, the header, the values.
struct Tensors {
  json header;
  std::vector<float> values;
};

Tensors tensors_in(const std::string& path) {
  const std::string bytes = content_of(path);
  uint64_t length = 0;
  if (bytes.size() >= sizeof(length)) std::memcpy(&length, bytes.data(), sizeof(length));
  if (bytes.size() < sizeof(length) + length || length == 0) {
    ADD_FAILURE() << path << " is not there, or damaged";
    return {};
  }
  const std::string body = bytes.substr(sizeof(length) + length);
  Tensors tensors{json::parse(bytes.substr(sizeof(length), length), nullptr, false), {}};
  tensors.values.resize(body.size() / sizeof(float));
  std::memcpy(tensors.values.data(), body.data(), tensors.values.size() * sizeof(float));
  return tensors;
}

void expect_near_parameters(const std::string& now, const std::string& before) {
  const Tensors is = tensors_in(now), was = tensors_in(before);
  EXPECT_EQ(is.header, was.header);
  ASSERT_EQ(is.values.size(), was.values.size());
  for (size_t i = 0; i < was.values.size(); ++i)
    EXPECT_NEAR(is.values[i], was.values[i], kParameterBound) << "value " << i;
}

// Every key of `before`, to the last bit; there may be others.
void expect_members(const json& now, const json& before, const std::string& where) {
  for (auto member = before.begin(); member != before.end(); ++member) {
    const std::string key = where + "." + member.key();
    const json value = now.contains(member.key()) ? now[member.key()] : json("missing");
    if (member->is_object() && value.is_object())
      expect_members(value, member.value(), key);
    else
      EXPECT_EQ(value, member.value()) << key;
  }
}

// Figures of a record that neither the speed of this machine nor its rounding decides.
json exact_figures(const json& run) {
  json figures;
  for (const char* key : {"status", "plan", "machines", "steps", "samples", "bytes_sent",
                          "messages", "peak_memory_bytes", "staleness", "counters", "links"})
    figures[key] = run[key];
  for (const char* key : {"total_s", "compute_s", "aggregate_s", "communicate_s", "wait_s"})
    figures["time"][key] = run["time"][key];
  return figures;
}

// In a copy, so that nothing is written among the sources.
class Kept : public testing::Test {
 protected:
  Kept() {
    std::filesystem::copy(TUTTI_SOURCE "/tests/golden/kept", folder_.path(),
                          std::filesystem::copy_options::recursive);
  }
  std::string printed(const Arguments& arguments) {
    const Ended ended = run_tutti(arguments, {.folder = folder_.path()}, kLate_s);
    EXPECT_EQ(ended.exit_code, kExitDone) << ended.err;
    told_ = ended.err;
    return ended.out;
  }
  json printed_json(const Arguments& arguments) {
    return json::parse(printed(arguments + Arguments{"--json"}), nullptr, false);
  }
  std::string answer(const std::string& name) { return content_of(folder_ / ("answers/" + name)); }
  // Writes an answer anew where that is asked for (docs/testing.md).
  void note_answer(const std::string& name, const json& figures) {
    if (!std::getenv("TUTTI_WRITE_GOLDEN")) return;
    write_text(TUTTI_SOURCE "/tests/golden/kept/answers/" + name, figures.dump(1) + "\n");
    write_text(folder_ / ("answers/" + name), figures.dump(1));
  }
  TemporaryFolder folder_;
  std::string told_;  // on standard error
};

TEST_F(Kept, JobIsRead) {
  expect_members(printed_json({"check", "job.toml"}), json::parse(answer("check.json")), "check");
}

TEST_F(Kept, RunIsShown) { EXPECT_EQ(printed({"show", "run"}), answer("show.txt")); }

TEST_F(Kept, RunIsPredictedFrom) {
  expect_near_rows(printed({"predict", "run"}), answer("predicted_test.csv"));
  expect_near_rows(printed({"predict", "run", "--data", "new.csv"}), answer("predicted_new.csv"));
}

TEST_F(Kept, RunIsRepeated) {
  const json now = printed_json({"train", "run/job.toml", "--out", "again", "--quiet"});
  const json before = json_in(folder_ / "run/run.json");
  for (const char* key : {"status", "plan", "machines", "steps", "samples"})
    EXPECT_EQ(now[key], before[key]) << key;
  // What a run costs may change when its protocol does, and is then written anew.
  note_answer("repeated.json", exact_figures(now));
  expect_members(now, json::parse(answer("repeated.json"), nullptr, false), "run");
  expect_near_parameters(folder_ / "again/parameters.safetensors",
                         folder_ / "run/parameters.safetensors");
}

TEST_F(Kept, SnapshotsAreResumed) {
  const json now = printed_json(
      {"train", "job.toml", "--set", "strategy.resume=run", "--out", "more", "--quiet"});
  json figures = exact_figures(now);
  figures["resumed"] = now["resumed"];
  note_answer("resumed.json", figures);
  expect_members(now, json::parse(answer("resumed.json")), "run");
  expect_near_parameters(folder_ / "more/parameters.safetensors",
                         folder_ / "answers/resumed.safetensors");
}

TEST_F(Kept, ComparisonIsGoneOnWith) {
  const json before = json_in(folder_ / "comparison/compare.json");
  printed({"compare", "compared.toml", "--out", "comparison", "--strategies",
           "solo,ring,tree,ps-ssp3,two-steps"});
  EXPECT_TRUE(has(told_, "5 of 5 runs are there already")) << told_;
  const json now = json_in(folder_ / "comparison/compare.json");
  ASSERT_EQ(now["strategies"].size(), before["strategies"].size());
  for (size_t i = 0; i < before["strategies"].size(); ++i)
    expect_members(now["strategies"][i], before["strategies"][i], before["strategies"][i]["name"]);
  for (const char* key : {"title", "not_possible"}) EXPECT_EQ(now[key], before[key]) << key;
  for (const char* key : {"task", "cluster"}) expect_members(now[key], before[key], key);
  // There may be new settings beside those that there were.
  std::istringstream lines(before["job"].get<std::string>());
  for (std::string line; std::getline(lines, line);)
    EXPECT_TRUE(has("\n" + now["job"].get<std::string>(), "\n" + line + "\n")) << line;
}

TEST_F(Kept, ComparisonIsReported) {
  printed({"report", "comparison/compare.json", "--out", "page.html", "--csv", "report.csv"});
  expect_columns(content_of(folder_ / "report.csv"), answer("report.csv"));
  EXPECT_EQ(content_of(folder_ / "report-curves.csv"), answer("report-curves.csv"));
  const std::string page = content_of(folder_ / "page.html");
  for (const json& row : json_in(folder_ / "comparison/compare.json")["strategies"])
    EXPECT_TRUE(has(page, row["name"].dump())) << row["name"];
}

}  // namespace
}  // namespace tutti
