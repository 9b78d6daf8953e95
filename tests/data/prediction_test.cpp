#include "data/prediction.h"

#include "tests/data/files.h"

namespace tutti {
namespace {

using Labels = std::vector<int32_t>;
using Floats = std::vector<float>;

class Prediction : public testing::Test {
 protected:
  void train(const std::string& kind, const std::string& content, const FieldValues& fields = {}) {
    config_ = configured<DataConfig>(kind, fields);
    set(config_, "path", directory_.write("trained", content));
    trained_ = load_all(config_).dataset;
  }
  PredictionData load(const std::string& content, const std::string& labels_path = "") {
    return load_for_prediction(config_, directory_.write("new", content), labels_path,
                               describe(config_, *trained_));
  }
  TemporaryDirectory directory_;
  DataConfig config_;
  std::shared_ptr<const Dataset> trained_;
};

TEST_F(Prediction, CsvRowsMayLeaveTheLabelOut) {
  train("csv", "a,b,k\n1,2,x\n3,4,y\n");
  for (const char* content : {"a,b\n5,6\n", "5,6\n"}) {
    const PredictionData data = load(content);
    EXPECT_FALSE(data.labelled);
    EXPECT_EQ(gather_all(*data.dataset).features, (Floats{5, 6}));
    EXPECT_EQ(data.dataset->class_names(), trained_->class_names());
  }
}

// "y" alone would be class 0 of its own file; it is class 1 of what the model was trained on.
TEST_F(Prediction, CsvLabelsAreThoseOfTheTraining) {
  train("csv", "a,b,k\n1,2,x\n3,4,y\n");
  const PredictionData data = load("a,b,k\n5,6,y\n");
  EXPECT_TRUE(data.labelled);
  EXPECT_EQ(gather_all(*data.dataset).labels, Labels{1});
  EXPECT_THROW(load("a,b,k\n5,6,z\n"), DataError);
}

TEST_F(Prediction, CsvRowsThatDoNotFitAreRefused) {
  train("csv", "a,b,k\n1,2,x\n3,4,y\n");
  for (const char* content : {"1\n", "1,2,x,4\n", "1,2\n3\n", "1,2\n3,four\n", "1,2\n3,1e300\n"})
    EXPECT_THROW(load(content), DataError) << content;
}

TEST_F(Prediction, TheHeaderSettingHolds) {
  train("csv", "1,2,3\n1,2,x\n3,4,y\n", {{"header", "yes"}});
  EXPECT_EQ(load("1,2\n5,6\n").dataset->size(), 1u);
}

// The format of scikit-learn's own files, read for prediction as it is for training.
TEST_F(Prediction, AHeaderOfCountsIsRecognised) {
  const std::string table = "3,2,x,y\n1,2,0\n3,4,1\n5,6,0\n";
  train("csv", table);
  ASSERT_EQ(trained_->size(), 3u);
  const PredictionData data = load(table);
  EXPECT_TRUE(data.labelled);
  EXPECT_EQ(gather_all(*data.dataset).features, (Floats{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(gather_all(*data.dataset).labels, (Labels{0, 1, 0}));
}

TEST_F(Prediction, AHeaderAloneIsNothingToPredict) {
  train("csv", "a,b,k\n1,2,x\n3,4,y\n");
  EXPECT_THROW(load("a,b\n"), DataError);
}

TEST_F(Prediction, RegressionTargetsAreRead) {
  train("csv", "x,y\n1,0.5\n2,1.5\n", {{"regression", true}});
  EXPECT_EQ(gather_all(*load("3,2.5\n").dataset).targets, Floats{2.5f});
  EXPECT_EQ(load("3\n").dataset->size(), 1u);
}

TEST_F(Prediction, ImagesComeWithOrWithoutLabels) {
  train("idx", idx(8, {3, 2, 2}, ramp(12)),
        {{"labels_path", directory_.write("labels", idx(8, {3}, {0, 1, 2}))}});
  const std::string images = idx(8, {2, 2, 2}, ramp(8));
  EXPECT_FALSE(load(images).labelled);
  const PredictionData data = load(images, directory_.write("l", idx(8, {2}, {2, 0})));
  EXPECT_TRUE(data.labelled);
  EXPECT_EQ(gather_all(*data.dataset).labels, (Labels{2, 0}));
  EXPECT_THROW(load(images, directory_.write("l", idx(8, {2}, {3, 0}))), DataError);
  EXPECT_THROW(load(idx(8, {2, 2, 3}, ramp(12))), DataError);
}

TEST_F(Prediction, TextKeepsTheVocabularyOfTheTraining) {
  train("text", "abcabcd", {{"context", 2}});
  const PredictionData data = load("bdbdb");
  EXPECT_EQ(data.dataset->sample_shape(), trained_->sample_shape());
  EXPECT_EQ(gather_all(*data.dataset).labels, (Labels{1, 3, 1}));
  EXPECT_THROW(load("abcxyz"), DataError);
}

// A file need not have all classes and features of the training data, and keeps their numbers.
TEST_F(Prediction, SparseRowsKeepTheClassesOfTheTraining) {
  train("libsvm", "-1 1:1\n3 2:1 4:5\n7 3:1\n");
  const PredictionData data = load("7 1:2\n3 2:4\n");
  EXPECT_EQ(data.dataset->sample_shape(), trained_->sample_shape());
  EXPECT_EQ(gather_all(*data.dataset).labels, (Labels{2, 1}));
  EXPECT_EQ(gather_all(*data.dataset).features, (Floats{2, 0, 0, 0, 0, 4, 0, 0}));
  EXPECT_THROW(load("5 1:2\n"), DataError);
  EXPECT_THROW(load("3 5:2\n"), DataError);
}

TEST_F(Prediction, FannKeepsTheClassesOfTheTraining) {
  train("fann", "3 1 1\n0.5\n-1\n0.25\n1\n0.5\n3\n");
  EXPECT_EQ(gather_all(*load("1 1 1\n0.5\n3\n").dataset).labels, Labels{2});
  EXPECT_THROW(load("1 1 1\n0.5\n2\n"), DataError);
  EXPECT_THROW(load("1 2 1\n0.5 1\n3\n"), DataError);
}

// Users and items are numbered as in the training data, in any order. The rating is optional.
TEST_F(Prediction, RatingsKeepTheNamesOfTheTraining) {
  train("ratings", "user,item,rating\nann,book,5\nbob,pen,1\nann,pen,3\n");
  const PredictionData rated = load("bob,book,2\nann,book,4\n");
  EXPECT_TRUE(rated.labelled);
  EXPECT_EQ(gather_all(*rated.dataset).features, (Floats{0, 1, 1, 0, 1, 0, 1, 0}));
  EXPECT_EQ(gather_all(*rated.dataset).targets, (Floats{2, 4}));
  const PredictionData bare = load("bob book\nann pen\n");
  EXPECT_FALSE(bare.labelled);
  EXPECT_EQ(gather_all(*bare.dataset).features, (Floats{0, 1, 1, 0, 1, 0, 0, 1}));
  EXPECT_THROW(load("eve,book,2\n"), DataError);
  EXPECT_THROW(load("ann,ann,2\n"), DataError);
  EXPECT_THROW(load("ann,book,2\nbob,book\n"), DataError);
}

}  // namespace
}  // namespace tutti
