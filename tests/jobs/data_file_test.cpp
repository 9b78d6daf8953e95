// data.json is read exactly as it was written, and impossible contents are refused.
#include "jobs/data_file.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "data/fingerprint.h"
#include "jobs/run_folder.h"
#include "tests/support/jobs.h"

namespace tutti {
namespace {

using namespace testing_support;
using nlohmann::json;

RunData example() {
  return {.description = {.kind = "csv",
                          .sample_shape = {2},
                          .classes = 3,
                          .class_names = {"plain", "caf\xe9", "with \"quotes\"\n"},
                          .answers_per_sample = 1,
                          .features = {{0.1, 1.0 / 3}, {-1e-300, 12345678901234567.0}},
                          .bytes = {1.0f / 255, -0.8101983f},
                          .columns = {"user a", "item b"}},
          .metric = "accuracy",
          .contents = "c",
          .split = "s",
          .task = "t"};
}

TEST(DataFile, KeepsEveryBit) {
  const TemporaryFolder folder;
  save_run_data(folder.path(), example());
  EXPECT_EQ(load_run_data(folder.path()), example());
}

TEST(DataFile, IsMissingInRunsOfOlderVersions) {
  const TemporaryFolder folder;
  EXPECT_EQ(load_run_data(folder.path()), std::nullopt);
}

// An editor of the file may also correct the checksum, so impossible sizes are refused separately.
TEST(DataFile, SizesThatCannotBeAreRefused) {
  const TemporaryFolder folder;
  save_run_data(folder.path(), example());
  const json whole = json::parse(read_file(folder / "data.json"));
  const auto refused = [&](const char* key, const json& value) {
    json changed = whole;
    changed.erase("checksum");
    changed[key] = value;
    changed["checksum"] = text_fingerprint(changed.dump());
    write_file(folder / "data.json", changed.dump());
    try {
      load_run_data(folder.path());
    } catch (const DataError& error) {
      return std::string(error.what()).find("data.json") != std::string::npos;
    }
    return false;
  };
  EXPECT_TRUE(refused("sample_shape", json::array()));
  EXPECT_TRUE(refused("sample_shape", {0}));
  EXPECT_TRUE(refused("sample_shape", {-2}));
  EXPECT_TRUE(refused("sample_shape", {int64_t{1} << 40, int64_t{1} << 40}));
  EXPECT_TRUE(refused("sample_shape", {3}));  // two features have scales
  EXPECT_TRUE(refused("classes", 4));
  EXPECT_TRUE(refused("classes", "three"));
  EXPECT_TRUE(refused("class_names", {1, 2, 3}));
  EXPECT_TRUE(refused("answers_per_sample", 0));
  EXPECT_TRUE(refused("standardised", {{"means", {1, 2}}, {"scales", {1}}}));
  EXPECT_TRUE(refused("bytes", json::object()));
}

}  // namespace
}  // namespace tutti
