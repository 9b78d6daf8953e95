// The documentation of the records is generated, current, and names every key that is written.
#include "testbed/record_reference.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "core/described_json.h"
#include "jobs/run_folder.h"
#include "testbed/advice.h"
#include "testbed/survey.h"

namespace tutti {
namespace {

using nlohmann::json;

TEST(RecordReference, IsWhatTheProgramPrints) {
  EXPECT_TRUE(read_file(TUTTI_SOURCE "/docs/record_reference.md") == record_reference())
      << "docs/record_reference.md is out of date; write it anew from the top folder:\n"
         "  build/release/tutti list records > docs/record_reference.md";
}

TEST(RecordReference, SaysSomethingOfEveryKeyOnce) {
  std::set<std::string> seen;
  for (const DescribedFile& file : described_files())
    for (const DescribedKey& key : file.keys) {
      EXPECT_TRUE(seen.insert(file.name + ": " + key.key).second) << key.key;
      EXPECT_FALSE(key.type.empty()) << key.key;
      EXPECT_FALSE(key.meaning.empty()) << key.key;
    }
  for (const char* key : {"run.json: nodes[].rank", "run.json: extra.tables.NAME.columns",
                          "compare.json: strategies[].to_target_s", "survey.json: tasks[].cells"})
    EXPECT_TRUE(seen.contains(key)) << key;
}

TEST(RecordReference, NamesWhatIsWritten) {
  const std::vector<DescribedFile> files = described_files();
  const auto expect_keys = [&](const std::string& name, const json& written) {
    std::set<std::string> keys;
    for (const DescribedFile& file : files)
      if (file.name == name)
        for (const DescribedKey& key : file.keys) keys.insert(key.key);
    for (const auto& [key, value] : written.items()) EXPECT_TRUE(keys.contains(key)) << key;
  };
  expect_keys("run.json", json_of(RecordedRun{}));
  expect_keys("compare.json", json_of(Comparison{}));
  expect_keys("survey.json", json_of(Survey{}));
  expect_keys("advice", json_of(Advice{}));
}

}  // namespace
}  // namespace tutti
