// Ratings in the forms they come in, and the generated ones.
#include <gtest/gtest.h>

#include "data/readers.h"
#include "tests/data/files.h"

namespace tutti {
namespace {

Source read(const TemporaryDirectory& directory, const std::string& content) {
  DataConfig config("ratings");
  set(config, "path", directory.write("ratings", content));
  return config.source->read(1);
}

Batch gathered(const Dataset& dataset) {
  std::vector<uint32_t> samples(dataset.size());
  for (uint32_t i = 0; i < samples.size(); ++i) samples[i] = i;
  Batch batch;
  dataset.with_sparse_rows()->gather(samples, batch);
  return batch;
}

TEST(Ratings, AreReadInEveryForm) {
  const TemporaryDirectory directory;
  for (const std::string content :
       {"userId,movieId,rating,timestamp\n7,1029,3.0,126\n7,31,2.5,1260\n9,1029,4,1\n",
        "7\t1029\t3\t881250949\n7\t31\t2.5\t1\n9\t1029\t4\t1\n",
        "7::1029::3::978300760\n7::31::2.5::9\n9::1029::4::9\n",
        "7 1029 3\n7 31 2.5\r\n9 1029 4"}) {
    const Source source = read(directory, content);
    EXPECT_EQ(source.dataset->sample_shape(), std::vector<int64_t>{4}) << content;
    EXPECT_EQ(source.dataset->classes(), 0);
    const Batch batch = gathered(*source.dataset);
    EXPECT_EQ(batch.targets, (std::vector<float>{3, 2.5, 4}));
    // Two users, then two items.
    EXPECT_EQ(batch.rows.columns, (std::vector<uint64_t>{0, 2, 0, 3, 1, 2}));
    EXPECT_EQ(batch.rows.values, std::vector<float>(6, 1.0F));
    EXPECT_EQ(batch.rows.begins, (std::vector<size_t>{0, 2, 4, 6}));
    EXPECT_TRUE(batch.features.empty());
  }
}

TEST(Ratings, AreDenseForModelsThatWantThemSo) {
  const TemporaryDirectory directory;
  const Source source = read(directory, "1 1 5\n2 1 4\n");
  Batch batch;
  source.dataset->gather(std::vector<uint32_t>{1}, batch);
  EXPECT_EQ(batch.features, (std::vector<float>{0, 1, 1}));
}

TEST(Ratings, NameTheLineThatIsNone) {
  const TemporaryDirectory directory;
  for (const std::string content : {"1 1 5\n2 2 good\n", "1 1 5\n2 2\n"}) {
    try {
      read(directory, content);
      ADD_FAILURE() << content;
    } catch (const DataError& error) {
      EXPECT_NE(std::string(error.what()).find("line 2"), std::string::npos) << error.what();
    }
  }
  EXPECT_THROW(read(directory, ""), DataError);
  EXPECT_THROW(read(directory, "user,item,rating\n"), DataError);
}

TEST(SyntheticRatings, AreTheSameForASeedAndGrow) {
  DataConfig config("synthetic-ratings");
  set(config, "samples", 50);
  const Batch few = gathered(*config.source->read(3).dataset);
  set(config, "samples", 100);
  const Batch more = gathered(*config.source->read(3).dataset);
  const Batch others = gathered(*config.source->read(4).dataset);
  for (size_t i = 0; i < 50; ++i) EXPECT_EQ(few.targets[i], more.targets[i]);
  EXPECT_NE(more.targets, others.targets);
  for (size_t i = 0; i < 100; ++i) {
    EXPECT_LT(more.rows.columns[2 * i], 200u);
    EXPECT_GE(more.rows.columns[2 * i + 1], 200u);
    EXPECT_LT(more.rows.columns[2 * i + 1], 300u);
  }
}

}  // namespace
}  // namespace tutti
