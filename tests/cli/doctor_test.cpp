// What `tutti doctor` says of this machine, and of one on which something is missing.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/cli/key_types.h"
#include "tests/support/programs.h"

namespace tutti {
namespace {

using namespace testing_support;
using nlohmann::json;

TEST(Doctor, SaysWhatThereIs) {
  const json report = json::parse(run_tutti({"doctor", "--json"}).out, nullptr, false);
  const std::string text = run_tutti({"doctor"}).out;
  expect_types(report, {{"cpu", "s"},
                        {"hardware_threads", "i"},
                        {"memory_bytes", "i"},
                        {"ucx_transports", "s"},
                        {"shared_memory", "s"},
                        {"pidfd", "b"},
                        {"blas", "s"},
                        {"models_library", "b"},
                        {"virtual_library", "b"},
                        {"fashion_mnist", "b"},
                        {"versions.libtorch", "s"}});
  EXPECT_EQ(report["models_library"], true);
  EXPECT_EQ(report["virtual_library"], true);
  EXPECT_TRUE(has(report["ucx_transports"].get<std::string>(), "tcp")) << report;
  EXPECT_TRUE(has(text, "transports"));
  // What the fabric itself gets, and what LibTorch itself has loaded.
  const json& chosen = report["transports_chosen"];
  EXPECT_EQ(chosen["same_machine"], json({"self", "sysv"}));
  EXPECT_EQ(chosen["other_machines"], json({"tcp"}));
  EXPECT_TRUE(has(text, "self, sysv on this machine, tcp to others"));
  EXPECT_TRUE(has(report["blas"].get<std::string>(), "blas")) << report["blas"];
  EXPECT_TRUE(report["missing"].is_array());
}

// This machine as a cluster: measured once, then taken from the cache; a damaged file is not.
TEST(Doctor, DescribesThisMachineAsACluster) {
  const TemporaryFolder folder;
  write_text(folder / "job.toml", small_job());
  const SubprocessOptions options{.folder = folder.path(),
                                  .environment = {"XDG_CACHE_HOME=" + folder.path() + "/c"}};
  const Ended written =
      run_tutti({"doctor", "--json", "--write-cluster", "this.toml"}, options, kLate_s);
  ASSERT_EQ(written.exit_code, 0) << written.err;
  const int threads = json::parse(written.out, nullptr, false)["hardware_threads"];
  const auto check = [&](const std::string& cluster) {
    return run_tutti({"check", "job.toml", "--cluster", cluster, "--json"}, options, kLate_s);
  };
  const json of_file = json::parse(check("this.toml").out, nullptr, false);
  EXPECT_EQ(of_file["planned"]["nodes"].size(), static_cast<size_t>(threads)) << of_file;
  // What was written is as good as what is measured now.
  std::filesystem::create_directories(folder / "c/tutti");
  const std::string kept = folder / "c/tutti/here.toml";
  std::filesystem::copy_file(folder / "this.toml", kept);
  const Ended again = check("here");
  EXPECT_TRUE(has(again.err, "this machine was measured 0.0 hours ago: " + kept)) << again.err;
  EXPECT_EQ(json::parse(again.out, nullptr, false)["planned"], of_file["planned"]);
  const std::string text = content_of(kept);
  write_text(kept, text + "[[[");
  const Ended anew = check("here");
  EXPECT_EQ(anew.exit_code, 0) << anew.err;
  EXPECT_TRUE(has(anew.err, kept + " is ignored, because it is damaged")) << anew.err;
  EXPECT_TRUE(has(anew.err, "this machine is described in " + kept)) << anew.err;
}

// Alone in a folder the program lacks its libraries: each with what to do about it.
TEST(Doctor, SaysWhatIsMissing) {
  const TemporaryFolder folder;
  std::filesystem::copy_file(TUTTI_PROGRAM, folder / "tutti");
  const SubprocessOptions alone{.folder = folder.path(), .program = folder / "tutti"};
  const json report = json::parse(run_tutti({"doctor", "--json"}, alone).out, nullptr, false);
  const std::string text = run_tutti({"doctor"}, alone).out;
  EXPECT_EQ(report["models_library"], false);
  EXPECT_EQ(report["virtual_library"], false);
  EXPECT_FALSE(has(report["blas"].get<std::string>(), ".so")) << "none is loaded";
  ASSERT_GE(report["missing"].size(), 4u);
  for (const json& entry : report["missing"]) {
    expect_types(entry, {{"what", "s"}, {"remedy", "s"}});
    EXPECT_TRUE(
        has(text, entry["what"].get<std::string>() + ": " + entry["remedy"].get<std::string>()))
        << text;
  }
  EXPECT_TRUE(has(text, "./scripts/build")) << text;
}

}  // namespace
}  // namespace tutti
