// A task is known by one fingerprint: every part of it makes another task, and nothing else does.
#include "jobs/task_identity.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/described_json.h"
#include "jobs/run_folder.h"
#include "tests/support/jobs.h"

namespace tutti {
namespace {

using namespace testing_support;
using nlohmann::json;

class TaskIdentities : public testing::Test {
 protected:
  TaskIdentities() { write_table("one", 700); }
  // The rows from 600 on carry another class: the first batches of both tables are equal.
  void write_table(const std::string& kind, int rows) {
    std::string table = "a,b,kind\n";
    for (int i = 0; i < rows; ++i)
      table += fmt::format("{},{},{}\n", i, i % 7, i < 600 ? (i % 2 ? "one" : "two") : kind);
    write_file(folder_ / "data.csv", table);
  }
  TaskIdentity identity(const Settings& more = {}) {
    const Settings task = {"task.data.kind=csv",
                           "task.data.path=" + (folder_ / "data.csv"),
                           "task.data.label=kind",
                           "task.data.standardise=false",
                           "task.model=logistic",
                           "task.global_batch=20",
                           "task.target=0.8",
                           "optimizer.kind=sgd",
                           "cluster.workers=2"};
    const Job job = load_job("", task + more);
    return task_identity(job, resolve(job));
  }
  // Returns which parts differ, with a space after each.
  static std::string parts(const TaskIdentity& a, const TaskIdentity& b) {
    std::string names;
    const json here = json_of(a), there = json_of(b);
    for (const auto& [part, value] : here.items())
      if (part != "fingerprint" && value != there.at(part)) names += part + " ";
    EXPECT_EQ(a.fingerprint == b.fingerprint, names.empty());
    EXPECT_EQ(task_difference(a, b).empty(), names.empty());
    return names;
  }
  TemporaryFolder folder_;
};

TEST_F(TaskIdentities, IsAnotherForEachPartOfATask) {
  const TaskIdentity first = identity();
  EXPECT_EQ(parts(identity(), first), "");
  EXPECT_EQ(parts(identity({"task.model={kind=\"mlp\", hidden=[4]}"}), first), "model ");
  EXPECT_EQ(parts(identity({"task.model={kind=\"mlp\", hidden=[4]}"}),
                  identity({"task.model={kind=\"mlp\", hidden=[5]}"})),
            "model ");
  EXPECT_EQ(parts(identity({"optimizer.kind=adam"}), first), "optimizer ");
  EXPECT_EQ(parts(identity({"task.target=0.9"}), first), "target ");
  EXPECT_EQ(parts(identity({"task.target=0"}), first), "target ");
  EXPECT_EQ(parts(identity({"task.global_batch=40"}), first), "global_batch ");
  EXPECT_EQ(parts(identity({"task.data.limit=100"}), first), "split ");
  EXPECT_EQ(parts(identity({"task.data.validation=0.2"}), first), "split ");
  write_table("two", 700);  // only labels of the last rows
  EXPECT_EQ(parts(identity(), first), "data ");
}

// What a model is trained on is scaled by its training samples, so another split is other data.
TEST_F(TaskIdentities, IsOfTheSamplesAsTheyAreTrainedOn) {
  const Settings scaled = {"task.data.standardise=true"};
  EXPECT_EQ(parts(identity(scaled), identity()), "data ");
  EXPECT_EQ(parts(identity(scaled + Settings{"task.data.limit=100"}), identity(scaled)),
            "data split ");
}

// A metric follows from the data and the model, so it never differs alone.
TEST_F(TaskIdentities, TellsMetricsApart) {
  const auto of = [](const std::string& data, const std::string& model) {
    const Job job = load_job("", {"task.data.kind=" + data, "task.model=" + model});
    return task_identity(job, resolve(job)).metric;
  };
  EXPECT_EQ(of("synthetic-classes", "logistic"), "accuracy");
  EXPECT_EQ(of("synthetic-linear", "linear"), "mse");
}

TEST_F(TaskIdentities, IsTheSameWhateverTrainsIt) {
  const TaskIdentity first = identity();
  for (const Settings& other :
       {Settings{"optimizer.lr=0.5"}, Settings{"optimizer.kind=momentum"},
        Settings{"optimizer.kind=nesterov"}, Settings{"task.seed=7"}, Settings{"task.epochs=9"},
        Settings{"cluster.workers=4"}, Settings{"cluster.fabric=virtual"},
        Settings{"strategy.kind=gossip"}, Settings{"name=other"}, Settings{"task.eval_every=0.5"}})
    EXPECT_EQ(parts(identity(other), first), "") << other[0];
}

}  // namespace
}  // namespace tutti
