// Every variant of the catalog on three virtual clusters, costs only, against what an earlier build
// said: virtual times, bytes, messages and memory by node, plans and refusals. No arithmetic is
// done, so the figures depend on no processor and are compared to the last bit.
//
// TUTTI_WRITE_GOLDEN=1 writes tests/golden/costs/*.json anew, when a change is intended.
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <iostream>
#include <map>

#include "fabric/outcome.h"
#include "tests/support/programs.h"

namespace tutti {
namespace {

using namespace testing_support;
using nlohmann::json;

const std::string kCosts = TUTTI_SOURCE "/tests/golden/costs/";

// What docs/fabrics.md promises of the solvers, as shares of the time. SimGrid ends what ends
// within a nanosecond at one moment, and some of these runs are thousands of messages in
// milliseconds.
constexpr double kRounding = 1e-5;
// SimGrid as it is by default overlooks links of messages that begin at one moment.
constexpr double kAgreement = 0.01;
// Where what it overlooks decides which of uneven workers is late, and all that follows from that.
const std::map<std::string, double> kDecided = {{"ps-adaptive", 0.06}, {"ps-backup1", 0.04}};

json of_each_node(const json& run, const char* key) {
  json values = json::array();
  for (const json& node : run["nodes"]) values.push_back(node[key]);
  return values;
}

json figures_of(const json& run) {
  const json& time = run["time"];
  return {
      {"plan", run["plan"]},
      {"machines", run["machines"]},
      {"steps", run["steps"]},
      {"samples", run["samples"]},
      {"total_s", time["total_s"]},
      {"phases_s", {time["compute_s"], time["aggregate_s"], time["communicate_s"], time["wait_s"]}},
      {"joules", run["energy"]["joules"]},
      {"staleness", run["staleness"]},
      {"counters", run["counters"]},
      {"roles", of_each_node(run, "role")},
      {"seconds", of_each_node(run, "total_s")},
      {"bytes", of_each_node(run, "bytes_sent")},
      {"messages", of_each_node(run, "messages")},
      {"memory_bytes", of_each_node(run, "peak_memory_bytes")}};
}

// Adds what a comparison of `job` says of its variants; a run replaces an earlier refusal.
void add_variants(const std::string& job, const std::string& cluster, const Arguments& more,
                  json& variants) {
  TemporaryFolder folder;
  const std::string out = folder / "compared";
  const Ended ended = run_tutti(Arguments{"compare", kCosts + job + ".toml", "--cluster",
                                          kCosts + cluster + ".toml", "--out", out, "--quiet"} +
                                    more,
                                {}, kLate_s);
  ASSERT_EQ(ended.exit_code, kExitDone) << ended.err;
  for (const json& refused : json_in(out + "/compare.json")["not_possible"])
    variants[refused["name"]] = {{"not_possible", refused["reason"]}};
  for (const auto& entry : std::filesystem::directory_iterator(out + "/runs")) {
    const json run = json_in(entry.path() / "run.json");
    ASSERT_EQ(run["status"], "done") << entry.path();
    variants[run["name"]] = figures_of(run);
  }
}

json variants_on(const std::string& cluster, const Arguments& more = {}) {
  json variants;
  add_variants("classes", cluster, more, variants);
  add_variants("linear", cluster, more + Arguments{"--strategies", "scheduled"}, variants);
  return variants;
}

// A line for each figure: readable, and a change of one figure is a change of one line.
std::string text_of(const json& variants) {
  std::string text = "{\n";
  for (auto variant = variants.begin(); variant != variants.end(); ++variant) {
    text += (text.size() > 2 ? ",\n" : "") + json(variant.key()).dump() + ": {\n";
    bool first = true;
    for (auto figure = variant->begin(); figure != variant->end(); ++figure) {
      text += (first ? "  " : ",\n  ") + json(figure.key()).dump() + ": " + figure.value().dump();
      first = false;
    }
    text += "\n}";
  }
  return text + "\n}\n";
}

void expect_equal(const std::string& name, const json& before, const json& now) {
  for (auto figure = before.begin(); figure != before.end(); ++figure)
    EXPECT_EQ(now.contains(figure.key()) ? now[figure.key()] : json("missing"), figure.value())
        << name << ": " << figure.key();
  for (auto figure = now.begin(); figure != now.end(); ++figure)
    EXPECT_TRUE(before.contains(figure.key()))
        << name << ": " << figure.key() << " is new: " << figure.value();
}

class GoldenCosts : public testing::TestWithParam<const char*> {};

TEST_P(GoldenCosts, AreWhatTheyWere) {
  const std::string path = kCosts + GetParam() + ".json";
  const json now = variants_on(GetParam());
  if (HasFailure()) return;
  if (std::getenv("TUTTI_WRITE_GOLDEN")) {
    write_text(path, text_of(now));
    std::cout << "wrote " << path << "\n";
  }
  const json before = json_in(path);
  ASSERT_TRUE(before.is_object()) << path << " cannot be read";
  for (auto variant = before.begin(); variant != before.end(); ++variant) {
    if (now.contains(variant.key()))
      expect_equal(variant.key(), variant.value(), now[variant.key()]);
    else
      ADD_FAILURE() << variant.key() << " is no variant of the catalog any more";
  }
  for (auto variant = now.begin(); variant != now.end(); ++variant)
    if (!before.contains(variant.key()))
      std::cout << variant.key() << " is new; TUTTI_WRITE_GOLDEN=1 "
                << "golden_test adds it to " << path << "\n";
}

// The same variants where `ours` shares the network as where `theirs` did. What is decided before a
// run cannot differ at all.
void expect_alike(const json& theirs, const json& ours,
                  const std::function<double(const std::string&)>& tolerance) {
  for (auto variant = theirs.begin(); variant != theirs.end(); ++variant) {
    if (!ours.contains(variant.key())) continue;
    const json& now = ours[variant.key()];
    ASSERT_EQ(now.contains("not_possible"), variant->contains("not_possible")) << variant.key();
    if (now.contains("not_possible")) continue;
    EXPECT_EQ(now["plan"], (*variant)["plan"]) << variant.key();
    EXPECT_EQ(now["memory_bytes"], (*variant)["memory_bytes"]) << variant.key();
    const double seconds = (*variant)["total_s"];
    EXPECT_NEAR(now["total_s"].get<double>(), seconds, tolerance(variant.key()) * seconds)
        << variant.key();
  }
}

TEST_P(GoldenCosts, AreThoseOfTheOtherSolvers) {
  const json stored = json_in(kCosts + GetParam() + ".json");
  const json ours = variants_on(GetParam(), {"--set", "cluster.network_solver=incremental"});
  const json full = variants_on(GetParam(), {"--set", "cluster.network_solver=simgrid_full"});
  if (HasFailure()) return;
  expect_alike(full, ours, [](const std::string&) { return kRounding; });
  expect_alike(stored, ours, [](const std::string& variant) {
    const auto decided = kDecided.find(variant);
    return decided == kDecided.end() ? kAgreement : decided->second;
  });
}

INSTANTIATE_TEST_SUITE_P(Clusters, GoldenCosts, testing::Values("host", "racks", "uneven"),
                         [](const auto& cluster) { return std::string(cluster.param); });

}  // namespace
}  // namespace tutti
