// Lessons are found again for the same learning, on whichever cluster, and for no other.
#include "testbed/learning_cache.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/programs.h"

namespace tutti {
namespace {

using namespace testing_support;
namespace fs = std::filesystem;

class Lessons : public testing::Test {
 protected:
  Job job(const Settings& more = {}) const {
    return load_job("", logistic_task() +
                            Settings{"cluster.fabric=virtual", "cluster.workers=4",
                                     "strategy={ kind = \"local_sgd\" }"} +
                            more);
  }
  LearningCache cache(const Settings& cluster = {}) {
    const Job declared = job(cluster);
    return {folder_ / "lessons", task_, declared,
            [this](const std::string& what) { notes_ += what + "\n"; }};
  }
  std::vector<fs::path> files() const {
    std::vector<fs::path> paths;
    for (const auto& entry : fs::recursive_directory_iterator(folder_.path()))
      if (entry.is_regular_file()) paths.push_back(entry.path());
    return paths;
  }
  TemporaryFolder folder_;
  TaskIdentity task_{.fingerprint = "the task",
                     .data = {},
                     .split = {},
                     .model = {},
                     .optimizer = {},
                     .metric = {},
                     .global_batch = {},
                     .target = {}};
  const Lesson lesson_{
      .exit_code = 0, .reached = true, .steps = 120, .evaluations = 3, .best_quality = 0.875};
  std::string notes_;
};

TEST_F(Lessons, AreFoundAgain) {
  EXPECT_FALSE(cache().find(job()));
  cache().keep(job(), lesson_);
  const std::optional<KeptLesson> kept = cache().find(job());
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->lesson.steps, 120);
  EXPECT_EQ(kept->lesson.evaluations, 3);
  EXPECT_EQ(kept->lesson.best_quality, 0.875);
  EXPECT_TRUE(kept->lesson.reached);
  EXPECT_FALSE(kept->from_another_cluster);
  EXPECT_EQ(notes_, "");
}

TEST_F(Lessons, AreOfOneTaskAndOneWayToLearnIt) {
  cache().keep(job(), lesson_);
  for (const char* change : {"task.seed=2", "optimizer.lr=0.07", "task.epochs=5", "task.target=0.6",
                             "task.global_batch=16", "strategy.sync_every=3", "cluster.workers=3",
                             "task.eval_every=0.5"})
    EXPECT_FALSE(cache().find(job({change}))) << change;
  task_.fingerprint = "other samples";
  EXPECT_FALSE(cache().find(job()));
}

// Where workers wait for each other it makes no difference how long they wait.
TEST_F(Lessons, AreThoseOfAnyClusterWhereAllWait) {
  cache().keep(job(), lesson_);
  const Settings slower = {"cluster.bandwidth=\"10 Mbit/s\"", "cluster.latency=\"20 ms\"",
                           "cluster.speed_factors=[1, 1, 0.5, 0.5]"};
  const std::optional<KeptLesson> kept = cache(slower).find(job(slower));
  ASSERT_TRUE(kept);
  EXPECT_FALSE(kept->from_another_cluster);
}

// What a run took is that of its cluster alone, and of what was measured for it.
TEST_F(Lessons, HaveTheirTimeOnTheirOwnCluster) {
  Lesson timed = lesson_;
  timed.time_s = 0.375;
  cache().keep(job(), timed);
  EXPECT_EQ(cache().find(job())->lesson.time_s, 0.375);
  EXPECT_EQ(cache().find(job({"cluster.latency=\"20 ms\""}))->lesson.time_s, 0);
  EXPECT_EQ(cache().find(job({"cluster.speed=\"1 GFLOP/s\""}))->lesson.time_s, 0);
  cache().keep(job(), lesson_);  // as an earlier version wrote it
  ASSERT_TRUE(cache().find(job()));
  EXPECT_EQ(cache().find(job())->lesson.time_s, 0);
}

TEST_F(Lessons, AreMarkedWhereTheClusterDecidesWhoseUpdateIsFirst) {
  const Settings async = {"strategy={ kind = \"gossip\", mode = \"async\" }"};
  cache().keep(job(async), lesson_);
  EXPECT_FALSE(cache().find(job(async))->from_another_cluster);
  const Settings slower = async + Settings{"cluster.bandwidth=\"10 Mbit/s\""};
  const std::optional<KeptLesson> kept = cache(slower).find(job(slower));
  ASSERT_TRUE(kept);
  EXPECT_TRUE(kept->from_another_cluster);
  // Other differences between the nodes are another way to learn.
  EXPECT_FALSE(cache().find(job(async + Settings{"cluster.speed_factors=[1, 1, 1, 0.5]"})));
}

TEST_F(Lessons, AreIgnoredWhereTheyAreDamaged) {
  for (const char* content : {"", "{", "{\"kind\": \"tutti lesson\"}", "[1, 2]",
                              "{\"kind\": \"survey\", \"exit_code\": 0, \"reached\": true, "
                              "\"steps\": 1, \"evaluations\": 1, \"best_quality\": 1}"}) {
    notes_.clear();
    cache().keep(job(), lesson_);
    ASSERT_EQ(files().size(), 1u);
    write_text(files().front(), content);
    EXPECT_FALSE(cache().find(job())) << content;
    EXPECT_NE(notes_.find("is ignored"), std::string::npos) << content << notes_;
    EXPECT_NE(notes_.find(files().front()), std::string::npos) << notes_;
    cache().keep(job(), lesson_);  // and replaced
    EXPECT_TRUE(cache().find(job()));
  }
}

TEST_F(Lessons, AreNotKeptWhereThatIsNotWanted) {
  LearningCache none("", task_, job(), [](const std::string&) {});
  none.keep(job(), lesson_);
  EXPECT_FALSE(none.find(job()));
  Lesson lost = lesson_;
  lost.exit_code = 4;  // nothing that would happen again
  cache().keep(job(), lost);
  EXPECT_TRUE(files().empty());
  write_text(folder_ / "lessons", "a file, where a folder would be made");
  cache().keep(job(), lesson_);
  EXPECT_NE(notes_.find("not kept"), std::string::npos) << notes_;
}

}  // namespace
}  // namespace tutti
