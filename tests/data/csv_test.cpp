#include "tests/data/files.h"

namespace tutti {
namespace {

class Csv : public testing::Test {
 protected:
  DataConfig config_of(const std::string& content) {
    DataConfig config("csv");
    set(config, "path", directory_.write("table.csv", content));
    return config;
  }
  TemporaryDirectory directory_;
};

using Names = std::vector<std::string>;
using Labels = std::vector<int32_t>;
using Floats = std::vector<float>;

TEST_F(Csv, AHeaderIsFoundAndTheLastColumnIsTheLabel) {
  const Data data = load_all(config_of("a,b,kind\n1,2,x\n3,4,y\n5,-6e-1,x\n"));
  EXPECT_EQ(data.dataset->sample_shape(), std::vector<int64_t>{2});
  EXPECT_EQ(data.dataset->classes(), 2);
  EXPECT_EQ(data.dataset->class_names(), (Names{"x", "y"}));
  const Batch batch = gather_all(*data.dataset);
  EXPECT_EQ(batch.features, (Floats{1, 2, 3, 4, 5, -0.6f}));
  EXPECT_EQ(batch.labels, (Labels{0, 1, 0}));
}

TEST_F(Csv, WithoutAHeaderTheFirstRowIsData) {
  const Data data = load_all(config_of("2,2,x\n3,4,y\n"));  // and not scikit-learn's counts
  EXPECT_EQ(data.dataset->size(), 2u);
  EXPECT_EQ(gather_all(*data.dataset).features, (Floats{2, 2, 3, 4}));
}

TEST_F(Csv, TheSettingDecidesWhetherThereIsAHeader) {
  DataConfig config = config_of("1,2,3\n4,5,6\n");
  EXPECT_EQ(load_all(config).dataset->size(), 2u);
  set(config, "header", "yes");
  EXPECT_EQ(load_all(config).dataset->size(), 1u);
  config = config_of("a,b,x\n4,5,y\n");
  set(config, "header", "no");
  expect_data_error(config, {"line 1, column 0", "'a'"});
}

TEST_F(Csv, TheFilesOfScikitLearnAreUnderstood) {
  const Data data = load_all(config_of("3,2,red,blue\n1,2,0\n3,4,1\n5,6,0\n"));
  EXPECT_EQ(data.dataset->size(), 3u);
  EXPECT_EQ(data.dataset->sample_shape(), std::vector<int64_t>{2});
}

TEST_F(Csv, TheLabelIsChosenByNameOrNumber) {
  for (const char* label : {"kind", "1"}) {
    DataConfig config = config_of("a,kind,b\n1,x,2\n3,y,4\n");
    set(config, "label", label);
    const Batch batch = gather_all(*load_all(config).dataset);
    EXPECT_EQ(batch.features, (Floats{1, 2, 3, 4}));
    EXPECT_EQ(batch.labels, (Labels{0, 1}));
  }
}

TEST_F(Csv, AnUnknownLabelIsRefusedWithTheNearest) {
  DataConfig config = config_of("a,kind,b\n1,x,2\n3,y,4\n");
  for (const char* label : {"kindd", "3", "-1", "0.5"}) {
    set(config, "label", label);
    try {
      load_all(config);
      ADD_FAILURE() << label;
    } catch (const ConfigError& error) {
      EXPECT_EQ(error.key(), "task.data.label");
      if (std::string(label) == "kindd") {
        EXPECT_NE(std::string(error.what()).find("'kind'"), std::string::npos) << error.what();
      }
    }
  }
}

TEST_F(Csv, NumericClassesAreInNumericOrder) {
  EXPECT_EQ(load_all(config_of("1,10\n1,9\n1,2\n1,10\n")).dataset->class_names(),
            (Names{"2", "9", "10"}));
  EXPECT_EQ(load_all(config_of("1,10\n1,9\n1,b\n")).dataset->class_names(),
            (Names{"10", "9", "b"}));
}

TEST_F(Csv, RegressionTakesTheLabelAsANumber) {
  DataConfig config = config_of("x,y\n1,0.5\n2,-1.5\n");
  set(config, "regression", true);
  const Data data = load_all(config);
  EXPECT_EQ(data.dataset->classes(), 0);
  const Batch batch = gather_all(*data.dataset);
  EXPECT_EQ(batch.targets, (Floats{0.5f, -1.5f}));
  EXPECT_TRUE(batch.labels.empty());
}

TEST_F(Csv, QuotesCarriageReturnsBlankLinesAndMarksAreHandled) {
  const Data data = load_all(
      config_of("\xEF\xBB\xBF\"a, first\",b,\"k\"\r\n\r\n\"1\",2,\"x \"\"y\"\"\nz\"\r\n 3 ,+4,w"));
  EXPECT_EQ(data.dataset->class_names(), (Names{"w", "x \"y\"\nz"}));
  EXPECT_EQ(gather_all(*data.dataset).features, (Floats{1, 2, 3, 4}));
}

TEST_F(Csv, GzipIsReadDirectly) {
  DataConfig config("csv");
  set(config, "path", directory_.write_gzip("table.csv.gz", "a,b\n1,x\n2,y\n"));
  EXPECT_EQ(load_all(config).dataset->size(), 2u);
}

TEST_F(Csv, AMessageNamesLineAndColumn) {
  expect_data_error(config_of("a,b,k\n1,2,x\n3,four,y\n"), {"line 3", "column 1 'b'", "'four'"});
  expect_data_error(config_of("a,b,k\n1,,x\n"), {"line 2", "column 1", "''"});
  expect_data_error(config_of("a,b,k\n1,nan,x\n"), {"line 2", "'nan'"});
  expect_data_error(config_of("a,b,k\n1,inf,x\n"), {"line 2", "'inf'"});
  expect_data_error(config_of("a,b,k\n1,1e300,x\n"), {"line 2", "'1e300'"});
  expect_data_error(config_of("a,b,k\n1,2,x\n1,2\n"), {"line 3", "2 fields", "3 are expected"});
  expect_data_error(config_of("a,b,k\n\"1\n2\",2,x\n1,z,x\n"), {"line 2", "column 0"});
  expect_data_error(config_of("a,b,k\n1,\"2,x\n"), {"line 2", "not closed"});
  expect_data_error(config_of("a,b,k\n1,\"2\"3,x\n"), {"line 2", "after a closing quote"});
  expect_data_error(config_of("a\n1\n"), {"one column"});
  expect_data_error(config_of("a,b\n"), {"no rows below"});
  expect_data_error(config_of("\n\n"), {"no rows"});
}

TEST_F(Csv, LinesAreCountedThroughQuotedFieldsAndBlankLines) {
  expect_data_error(config_of("a,b,k\n1,2,\"x\ny\"\n\n1,bad,x\n"), {"line 5", "'bad'"});
}

}  // namespace
}  // namespace tutti
