#include <algorithm>

#include "tests/core/key_recorder.h"
#include "tests/data/files.h"

namespace tutti {
namespace {

bool shows(std::string_view kind, const std::string& key) {
  DataConfig config(kind);
  KeyRecorder recorder;
  visit(recorder, config);
  return std::count(recorder.keys.begin(), recorder.keys.end(), key) == 1;
}

TEST(DataCatalog, OnlyTheKeysOfTheKindAreShown) {
  for (const DataEntry& entry : data_catalog()) {
    const bool is_synthetic = entry.name.starts_with("synthetic");
    EXPECT_EQ(shows(entry.name, "path"), !is_synthetic);
    EXPECT_EQ(shows(entry.name, "samples"), is_synthetic);
    EXPECT_EQ(shows(entry.name, "classes"), entry.name == "synthetic-classes");
    EXPECT_EQ(shows(entry.name, "labels_path"), entry.name == "idx");
    const bool is_series = entry.name == "series", is_csv = entry.name == "csv";
    const bool is_other_table = entry.name == "libsvm" || entry.name == "fann";
    EXPECT_EQ(shows(entry.name, "label"), is_csv || is_series || entry.name == "fann");
    EXPECT_EQ(shows(entry.name, "header"), is_csv);
    EXPECT_EQ(shows(entry.name, "regression"), is_csv || is_other_table);
    EXPECT_EQ(shows(entry.name, "standardise"), is_csv || is_other_table || is_series);
    EXPECT_EQ(shows(entry.name, "test_path"), is_other_table);
    EXPECT_EQ(shows(entry.name, "columns"), is_series);
    EXPECT_EQ(shows(entry.name, "context"),
              is_series || entry.name == "text" || entry.name == "tokens");
    EXPECT_EQ(shows(entry.name, "test"), entry.name != "fashion-mnist" && entry.name != "cifar10");
    EXPECT_TRUE(shows(entry.name, "limit") && shows(entry.name, "validation"));
    EXPECT_FALSE(shows(entry.name, "kind"));
  }
}

TEST(DataCatalog, TheDefaultValidationShareIsThatOfTheKind) {
  for (const char* kind : {"fashion-mnist", "csv"}) {
    DataConfig config(kind);
    KeyRecorder recorder;
    visit(recorder, config);
    EXPECT_DOUBLE_EQ(config.validation, std::string(kind) == "csv" ? 0.1 : 1.0 / 12);
  }
}

TEST(DataCatalog, AnUnknownKindIsRefusedWithTheNearest) {
  try {
    DataConfig("fashion-mnst");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("'fashion-mnist'"), std::string::npos);
  }
}

// For who has the data elsewhere than the job says: also where the job names no path at all.
TEST(DataCatalog, EveryKindFindsItsFilesInAnotherFolder) {
  for (const DataEntry& entry : data_catalog()) {
    DataConfig config(entry.name);
    if (!entry.folder)
      for (const char* key : {"path", "labels_path", "test_path"})
        try_set(config, key, std::string("/far/away/") + key);
    move_to(config, "/here");
    const std::vector<std::string> files = data_files(config, "");
    EXPECT_EQ(files.empty(), entry.generated) << entry.name;
    for (const std::string& file : files) {
      EXPECT_TRUE(file.starts_with("/here/")) << entry.name << ": " << file;
      EXPECT_EQ(std::count(file.begin(), file.end(), '/'), 2) << entry.name << ": " << file;
    }
  }
}

TEST(DataCatalog, RelativePathsStartAtTheBaseDirectory) {
  const TemporaryDirectory directory;
  directory.write("t.csv", "1,x\n2,y\n3,z\n");
  DataConfig config("csv");
  set(config, "path", "t.csv");
  config.validation = config.test = 0;
  EXPECT_EQ(load_data(config, 1, directory.path()).dataset->size(), 3u);
}

}  // namespace
}  // namespace tutti
