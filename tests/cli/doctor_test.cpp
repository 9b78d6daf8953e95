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
