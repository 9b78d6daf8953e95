// `tutti compare --bundle` and `tutti verify` as their users meet them, and as a forger does.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <functional>

#include "core/described_json.h"
#include "fabric/outcome.h"
#include "jobs/run_folder.h"
#include "testbed/bundle.h"
#include "tests/support/programs.h"

namespace tutti {
namespace {

using namespace testing_support;
using nlohmann::json;
namespace fs = std::filesystem;

constexpr const char* kBundleFile = "bundle.tar.gz";

std::string virtual_job(const std::string& data) {
  return "name = \"small\"\n[task]\ndata = " + data +
         "\nmodel = \"logistic\"\nglobal_batch = 20\nepochs = 2\neval_every = 0.5\ntarget = 0.6\n"
         "[optimizer]\nkind = \"sgd\"\nlr = 0.1\n"
         "[cluster]\nfabric = \"virtual\"\nworkers = 4\n";
}

const std::string kGenerated =
    "{ kind = \"synthetic-classes\", samples = 400, features = 8, classes = 3 }";

Ended run_in(const TemporaryFolder& folder, const Arguments& arguments) {
  return run_tutti(arguments, {.folder = folder.path()}, kLate_s);
}

// One bundle for all tests, which work on copies of it.
class Verify : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    made_ = new TemporaryFolder();
    write_text(*made_ / "job.toml", virtual_job(kGenerated));
    const Ended ended =
        run_in(*made_, {"compare", "job.toml", "--strategies", "solo,ring,tree,ps-asp,local-sgd-16",
                        "--seeds", "2", "--out", "compared", "--bundle", kBundleFile, "--quiet"});
    ASSERT_EQ(ended.exit_code, kExitDone) << ended.err;
    EXPECT_TRUE(has(ended.out, kBundleFile)) << ended.out;
  }
  static void TearDownTestSuite() { delete made_; }

  Verify() { fs::copy_file(*made_ / kBundleFile, folder_ / kBundleFile); }

  Ended verify(const Arguments& more = {}) {
    Arguments all = {"verify", kBundleFile};
    all.insert(all.end(), more.begin(), more.end());
    return run_in(folder_, all);
  }
  json verify_json(const Arguments& more, int exit_code) {
    Arguments all = more;
    all.insert(all.end(), {"--json", "--quiet"});
    const Ended ended = verify(all);
    EXPECT_EQ(ended.exit_code, exit_code) << ended.err << ended.out;
    return json::parse(ended.out, nullptr, false);
  }
  // What a forger does who knows the format: all of it agrees with itself again.
  void forge(const std::function<void(Comparison&)>& change) {
    const std::string path = folder_ / kBundleFile;
    BundleFile file = read_bundle_file(path);
    Comparison comparison =
        comparison_of(json::parse(file.members["compare.json"]), "compare.json");
    change(comparison);
    file.members["compare.json"] = json_of(comparison).dump() + "\n";
    file.members["claims.json"] = json_of(claims_of(comparison)).dump() + "\n";
    file.members["job.toml"] = comparison.job;
    write_bundle_file(path, file);
  }
  void expect_refused(const std::vector<std::string>& parts, const Arguments& more = {}) {
    const Ended ended = verify(more);
    EXPECT_EQ(ended.exit_code, kExitBadJob) << ended.out;
    for (const std::string& part : parts)
      EXPECT_TRUE(has(ended.err, part)) << ended.err << " lacks: " << part;
  }

  TemporaryFolder folder_;
  static TemporaryFolder* made_;
};
TemporaryFolder* Verify::made_ = nullptr;

ComparedStrategy& row_in(Comparison& comparison, const std::string& name) {
  for (ComparedStrategy& row : comparison.strategies)
    if (row.name == name) return row;
  throw std::runtime_error("no strategy " + name);
}

// As if each value had been `factor` times what it was.
void scale(OverSeeds& figure, double factor) {
  SeedValues values = figure.value().values;
  for (auto& value : values)
    if (value) *value *= factor;
  figure = olympic_statistic(values);
}

TEST_F(Verify, EveryClaimIsConfirmedWhereItWasMade) {
  const json result = verify_json({}, kExitDone);
  EXPECT_EQ(result["verdict"], "confirmed");
  EXPECT_EQ(result["not_confirmed"], 0);
  EXPECT_EQ(result["not_checked"], 0);
  EXPECT_EQ(result["same_arithmetic"], true);
  std::map<std::string, int> kinds;
  for (const json& checked : result["claims"]) {
    ++kinds[checked["claim"]["kind"]];
    EXPECT_EQ(checked["verdict"], "confirmed") << checked;
    if (checked["claim"]["kind"] != "order") {
      EXPECT_EQ(checked["difference"], 0) << checked;
    }
  }
  for (const char* kind : {"order", "outcome", "time to target", "quality", "time", "traffic",
                           "memory", "energy", "curve", "plan"})
    EXPECT_GT(kinds[kind], 0) << kind;
  // Nothing is left behind.
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), {}), 1);
}

TEST_F(Verify, APartIsRunWithWhomItSharesItsCurve) {
  const json result = verify_json({"--part", "tree", "--seeds", "1"}, kExitDone);
  EXPECT_EQ(result["strategies"], json({"solo", "tree"}));
  EXPECT_EQ(result["seeds"], json({1}));
  EXPECT_GT(result["confirmed"], 0);
  EXPECT_GT(result["not_checked"], 0);
  for (const json& checked : result["claims"]) {
    const std::string name = checked["claim"]["strategy"];
    if (name != "tree" && name != "solo") {
      EXPECT_EQ(checked["verdict"], "not checked") << checked;
    }
  }
}

// A bundle takes the place of another bundle, never of the job, its data or anything else.
TEST_F(Verify, ABundleReplacesNothingElse) {
  const std::string job = virtual_job(kGenerated);
  write_text(folder_ / "job.toml", job);
  const auto refused = [&](const Arguments& more, const std::string& part) {
    const Ended ended = run_in(
        folder_, Arguments{"compare", "job.toml", "--strategies", "solo", "--out", "o"} + more);
    EXPECT_EQ(ended.exit_code, kExitBadJob) << ended.err;
    EXPECT_TRUE(has(ended.err, part)) << ended.err;
    EXPECT_FALSE(fs::exists(folder_ / "o")) << "nothing has run";
  };
  refused({"--bundle", "job.toml"}, "is not a bundle");
  EXPECT_EQ(content_of(folder_ / "job.toml"), job);
  refused({"--bundle", "."}, "is not a bundle");
  refused({"--bundle", "nowhere/b.tar.gz"}, "cannot be written");
  refused({"--bundle", "b.tar.gz", "--tune", "optimizer.lr=0.1,0.2"}, "tuned.toml");
}

TEST_F(Verify, MembersThatAreNoObjectsAreRefused) {
  for (const char* member : {"claims.json", "compare.json"})
    for (const char* text : {"null", "[]", "3"}) {
      BundleFile file = read_bundle_file(*made_ / kBundleFile);
      file.members[member] = text;
      write_bundle_file(folder_ / kBundleFile, file);
      const Ended ended = verify();
      EXPECT_EQ(ended.exit_code, kExitBadJob) << ended.err;
      EXPECT_TRUE(has(ended.err, kBundleFile)) << ended.err;
      EXPECT_FALSE(has(ended.err, "json.exception")) << ended.err;
    }
}

TEST_F(Verify, PeopleReadWhatIsConfirmed) {
  const Ended ended = verify({"--part", "ring,local-sgd-16"});
  EXPECT_EQ(ended.exit_code, kExitDone) << ended.err;
  EXPECT_TRUE(has(ended.out, "CONFIRMED: ")) << ended.out;
  EXPECT_TRUE(has(ended.out, "traffic ")) << ended.out;
  EXPECT_FALSE(has(ended.out, "NOT CONFIRMED")) << ended.out;
  EXPECT_TRUE(has(ended.err, "running 3 of 5 strategies with 2 of 2 seeds")) << ended.err;
  const Ended all = verify({"--part", "ring", "--all", "--quiet"});
  EXPECT_TRUE(has(all.out, "ring ends with accuracy")) << all.out;
  EXPECT_TRUE(all.err.empty()) << all.err;
}

TEST_F(Verify, WhatIsNotInTheBundleIsSaid) {
  expect_refused({"--part", "'rong'", "did you mean 'ring'?"}, {"--part", "rong"});
  expect_refused({"--seeds", "no seed 7", "it has 1, 2"}, {"--seeds", "1,7"});
  expect_refused({"--seeds", "has 2 of them"}, {"--seeds", "5"});
  expect_refused({"--max-time", "10 min"}, {"--max-time", "soon"});
}

TEST_F(Verify, WhatThereIsNoTimeForIsNotChecked) {
  const json result = verify_json({"--max-time", "1 ms"}, kExitBadJob);
  EXPECT_EQ(result["verdict"], "not checked");
  EXPECT_EQ(result["not_confirmed"], 0);
  for (const json& checked : result["claims"])
    if (checked["claim"]["kind"] == "traffic") {
      EXPECT_EQ(checked["finding"], "the time was up");
    }
}

TEST_F(Verify, RunsAreKeptAndGoneOnWith) {
  EXPECT_EQ(verify({"--part", "ring", "--out", "kept"}).exit_code, kExitDone);
  EXPECT_TRUE(fs::exists(folder_ / "kept/runs/ring-seed2/run.json"));
  const Ended again = verify({"--part", "ring", "--out", "kept"});
  EXPECT_EQ(again.exit_code, kExitDone) << again.err;
  EXPECT_TRUE(has(again.err, "4 of 4 runs are there already")) << again.err;
}

TEST_F(Verify, StandardToolsOpenABundle) {
  const std::string command = "tar -xzf " + (folder_ / kBundleFile) + " -C " + folder_.path() +
                              " && cd " + folder_.path() +
                              " && test -s compare.json -a -s claims.json -a -s README.txt";
  EXPECT_EQ(std::system(command.c_str()), 0);
  const json manifest = json_in(folder_ / "manifest.json");
  for (const json& file : manifest["files"])
    EXPECT_EQ(sha256_of(content_of(folder_ / file["name"])), file["sha256"]) << file;
  const Ended repeated =
      run_in(folder_, {"train", "jobs/ring-seed2.toml", "--out", "again", "--quiet"});
  EXPECT_EQ(repeated.exit_code, kExitDone) << repeated.err;
}

TEST_F(Verify, AFigureThatDoesNotFitTheOthersIsAContradiction) {
  const std::string path = folder_ / kBundleFile;
  BundleFile file = read_bundle_file(path);
  Comparison comparison = comparison_of(json::parse(file.members["compare.json"]), "compare.json");
  scale(row_in(comparison, "ring").bytes_total, 0.5);
  file.members["compare.json"] = json_of(comparison).dump() + "\n";
  write_bundle_file(path, file);  // with checksums that fit
  expect_refused({"contradicts itself", "claims.json", "ring sends"});
}

TEST_F(Verify, AForgedFigureIsNotConfirmedByTheRun) {
  forge([](Comparison& comparison) { scale(row_in(comparison, "tree").to_target_s, 0.5); });
  const json result = verify_json({"--part", "tree,ring"}, kExitNotConfirmed);
  EXPECT_EQ(result["verdict"], "not confirmed");
  bool found = false;
  for (const json& checked : result["claims"])
    if (checked["claim"]["kind"] == "time to target" && checked["claim"]["strategy"] == "tree") {
      EXPECT_EQ(checked["verdict"], "not confirmed") << checked;
      EXPECT_DOUBLE_EQ(checked["difference"], 1) << checked;
      EXPECT_TRUE(has(checked["finding"], "+100.00 %")) << checked;
      found = true;
    }
  EXPECT_TRUE(found);
  const Ended said = verify({"--part", "tree"});
  EXPECT_EQ(said.exit_code, kExitNotConfirmed);
  EXPECT_TRUE(has(said.out, "NOT CONFIRMED: ")) << said.out;
}

TEST_F(Verify, EveryKindOfForgeryIsFound) {
  const std::vector<std::pair<std::string, std::function<void(ComparedStrategy&)>>> forgeries = {
      {"traffic", [](ComparedStrategy& row) { scale(row.steps, 0.5); }},
      {"time", [](ComparedStrategy& row) { scale(row.total_s, 0.999); }},
      {"memory", [](ComparedStrategy& row) { scale(row.peak_memory_bytes, 0.5); }},
      {"energy", [](ComparedStrategy& row) { scale(row.energy_j, 0.9); }},
      {"quality", [](ComparedStrategy& row) { scale(row.quality.final_test, 1.01); }},
      {"outcome", [](ComparedStrategy& row) { row.statuses[0] = row.status = "diverged"; }},
      {"curve", [](ComparedStrategy& row) { *row.curves[0].points[0].quality += 0.1; }}};
  // All in one bundle, so that one run finds them.
  forge([&](Comparison& comparison) {
    for (const auto& [kind, change] : forgeries) change(row_in(comparison, "solo"));
  });
  const json result = verify_json({"--part", "solo", "--seeds", "1"}, kExitNotConfirmed);
  for (const auto& [kind, change] : forgeries)
    for (const json& checked : result["claims"])
      if (checked["claim"]["kind"] == kind && checked["claim"]["strategy"] == "solo") {
        EXPECT_EQ(checked["verdict"], "not confirmed") << checked;
      }
}

TEST_F(Verify, AForgedPlanOrTitleIsFound) {
  const std::string path = folder_ / kBundleFile;
  BundleFile file = read_bundle_file(path);
  json plan = json::parse(file.members["plans/ring.json"]);
  plan["workers"] = 8;
  file.members["plans/ring.json"] = plan.dump();
  std::string& job = file.members["jobs/solo-seed1.toml"];
  job.replace(job.find("lr = "), 5, "lr = 1");
  write_bundle_file(path, file);
  const json result = verify_json({"--part", "ring", "--seeds", "1"}, kExitNotConfirmed);
  for (const json& checked : result["claims"])
    if (checked["claim"]["kind"] == "plan" && checked["verdict"] != "not checked") {
      const bool of_ring = checked["claim"]["strategy"] == "ring";
      EXPECT_EQ(checked["verdict"], "not confirmed") << checked;
      EXPECT_TRUE(has(checked["finding"], of_ring ? "/workers" : "lr = 1")) << checked;
    }
  forge([](Comparison& comparison) { comparison.title += " at 10 Mbit/s"; });
  expect_refused({"contradicts itself", "its title is", "10 Mbit/s"}, {"--part", "solo"});
}

TEST_F(Verify, AJobThatReachesOutIsRefused) {
  const std::string entry =
      "[[compare]]\nname = \"more\"\nstrategy = { kind = "
      "\"parameter_server\", resume = \"/var/somewhere\" }\n";
  forge([&](Comparison& comparison) { comparison.job += entry; });
  expect_refused({"\"/var/somewhere\"", "strategy.resume"});
}

TEST_F(Verify, AFileThatIsNoBundleIsRefused) {
  const std::string whole = content_of(folder_ / kBundleFile);
  write_text(folder_ / kBundleFile, whole.substr(0, whole.size() / 2));
  expect_refused({kBundleFile, "ends too early"});
  fs::remove(folder_ / kBundleFile);
  expect_refused({kBundleFile, "there is no such file"});
  ASSERT_EQ(mkfifo((folder_ / kBundleFile).c_str(), 0600), 0);
  expect_refused({kBundleFile, "not a file"});
}

// Three classes by the sign of two numbers.
std::string flowers(int shift) {
  std::string text = "x,y,kind\n";
  for (int i = 0; i < 120; ++i) {
    const int x = (i * 37 + shift) % 21 - 10, y = (i * 53) % 19 - 9;
    text += std::to_string(x) + "," + std::to_string(y) + "," +
            (x > 2   ? "rose"
             : y > 0 ? "tulip"
                     : "daisy") +
            "\n";
  }
  return text;
}

TEST_F(Verify, ForeignDataIsShownAndNotUsed) {
  fs::create_directory(folder_ / "there");
  write_text(folder_ / "there/flowers.csv", flowers(0));
  write_text(folder_ / "job.toml",
             virtual_job("{ kind = \"csv\", path = \"there/flowers.csv\", label = \"kind\" }"));
  fs::remove(folder_ / kBundleFile);
  const Ended made = run_in(folder_, {"compare", "job.toml", "--strategies", "solo,ring", "--out",
                                      "compared", "--bundle", kBundleFile, "--quiet"});
  ASSERT_EQ(made.exit_code, kExitDone) << made.err;
  EXPECT_EQ(verify({"--quiet"}).exit_code, kExitDone);  // the same file, in the same place

  fs::rename(folder_ / "there", folder_ / "elsewhere");
  expect_refused({"there/flowers.csv", "is not there", "--data-dir"});
  EXPECT_EQ(verify({"--quiet", "--data-dir", "elsewhere"}).exit_code, kExitDone);

  // What lies there now is something else, and none of it is told.
  fs::create_directory(folder_ / "there");
  for (const std::string& other : {flowers(1), std::string("secret,secret2\nsecret3\n")}) {
    write_text(folder_ / "there/flowers.csv", other);
    expect_refused({"there/flowers.csv", "is not the data of the comparison", "--data-dir"});
    EXPECT_FALSE(has(verify().err, "secret"));
    expect_refused({"is not the data of the comparison"}, {"--data-dir", "there"});
  }
}

TEST_F(Verify, ABundleThatCannotBeWrittenIsSaid) {
  write_text(folder_ / "job.toml", virtual_job(kGenerated));
  const Ended full = run_tutti({"compare", "job.toml", "--strategies", "solo", "--out", "compared",
                                "--bundle", "/no/such/folder/bundle.tar.gz", "--quiet"},
                               {.folder = folder_.path()}, kLate_s);
  EXPECT_NE(full.exit_code, kExitDone);
  EXPECT_TRUE(has(full.err, "/no/such/folder/bundle.tar.gz")) << full.err;
  EXPECT_FALSE(fs::exists(folder_ / "compared")) << "before anything has run";
}

}  // namespace
}  // namespace tutti
