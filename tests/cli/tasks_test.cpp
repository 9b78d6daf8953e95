// The reference tasks: each recipe reaches its target on a virtual cluster of 8 nodes and learns on
// two processes. A task whose data is not on this machine is skipped.
#include <gtest/gtest.h>

#include <cmath>

#include "fabric/outcome.h"
#include "jobs/tasks.h"
#include "tests/support/programs.h"

namespace tutti {
namespace {

using namespace testing_support;

class Task : public testing::TestWithParam<ReferenceTask> {
 protected:
  // Whether the recipe takes minutes, most of them in the model.
  bool is_heavy() const {
    return GetParam().name == "image-cifar10" || GetParam().name == "language-kjv";
  }

  void SetUp() override {
    const auto missing = missing_files(load_job(recipe_of(GetParam()), {}));
    if (!missing.empty())
      GTEST_SKIP() << missing.front() << " is not here: run " << GetParam().remedy;
  }

  nlohmann::json train(const Settings& settings) {
    const TemporaryFolder folder;
    std::vector<std::string> arguments = {"train", recipe_of(GetParam()), "--json", "--out", "run"};
    for (const std::string& setting : settings) {
      arguments.push_back("--set");
      arguments.push_back(setting);
    }
    const Ended ended = run_tutti(arguments, {.folder = folder.path()}, 1500);
    EXPECT_EQ(ended.exit_code, kExitDone) << ended.err;
    return nlohmann::json::parse(ended.out, nullptr, false);
  }
};

TEST_P(Task, ReachesItsTargetOnEightVirtualNodes) {
  const nlohmann::json record = train({"task.stop_at_target=true"});
  ASSERT_TRUE(record.is_object());
  EXPECT_EQ(record["quality"]["reached"], true) << record["quality"].dump();
  EXPECT_EQ(record["nodes"].size(), 8U);
}

TEST_P(Task, RunsOnTwoProcesses) {
  Settings settings = {"cluster.fabric=process", "cluster.workers=2", "task.stop_at_target=true"};
  if (is_heavy())
    settings = settings + Settings{"task.max_steps=8", "task.data.limit=256", "task.eval_every=1"};
  const nlohmann::json record = train(settings);
  ASSERT_TRUE(record.is_object());
  EXPECT_EQ(record["nodes"].size(), 2U);
  if (!is_heavy()) {
    EXPECT_EQ(record["quality"]["reached"], true) << record["quality"].dump();
  }
}

INSTANTIATE_TEST_SUITE_P(Reference, Task, testing::ValuesIn(reference_tasks()), [](const auto& c) {
  std::string name(c.param.name);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

// Solves a x = b, symmetric and positive, by elimination.
std::vector<double> solve(std::vector<std::vector<double>> a, std::vector<double> b) {
  const size_t n = b.size();
  for (size_t i = 0; i < n; ++i)
    for (size_t row = i + 1; row < n; ++row) {
      const double factor = a[row][i] / a[i][i];
      for (size_t j = i; j < n; ++j) a[row][j] -= factor * a[i][j];
      b[row] -= factor * b[i];
    }
  for (size_t i = n; i-- > 0;) {
    for (size_t j = i + 1; j < n; ++j) b[i] -= a[i][j] * b[j];
    b[i] /= a[i][i];
  }
  return b;
}

// The optimum of the regression task is known: that of the normal equations. The target lies above
// what it reaches on validation, and not far above.
TEST(RegressionTask, TargetIsNearTheOptimum) {
  const auto& tasks = reference_tasks();
  const auto task = std::find_if(tasks.begin(), tasks.end(),
                                 [](const auto& t) { return t.name == "regression-abalone"; });
  const Job job = load_job(recipe_of(*task), {});
  if (!missing_files(job).empty()) GTEST_SKIP() << "its data is not here: run " << task->remedy;
  const Data data = load_data(job.task.data, 1, job.base_dir);
  Batch batch;
  data.dataset->gather(data.splits.train, batch);
  const size_t width = batch.features.size() / batch.size();
  const auto row_of = [&](size_t i) {
    std::vector<double> row(batch.features.begin() + static_cast<ptrdiff_t>(i * width),
                            batch.features.begin() + static_cast<ptrdiff_t>((i + 1) * width));
    row.push_back(1);
    return row;
  };
  std::vector<std::vector<double>> products(width + 1, std::vector<double>(width + 1));
  std::vector<double> right(width + 1);
  for (size_t i = 0; i < batch.size(); ++i) {
    const std::vector<double> row = row_of(i);
    for (size_t j = 0; j <= width; ++j) {
      for (size_t k = 0; k <= width; ++k) products[j][k] += row[j] * row[k];
      right[j] += row[j] * static_cast<double>(batch.targets[i]);
    }
  }
  // Columns that sum to a constant have no unique weights: a little keeps them apart.
  for (size_t j = 0; j <= width; ++j) products[j][j] += 1e-6;
  const std::vector<double> weights = solve(products, right);
  data.dataset->gather(data.splits.validation, batch);
  double squares = 0;
  for (size_t i = 0; i < batch.size(); ++i) {
    const std::vector<double> row = row_of(i);
    double error = -static_cast<double>(batch.targets[i]);
    for (size_t j = 0; j <= width; ++j) error += row[j] * weights[j];
    squares += error * error;
  }
  const double optimum = squares / static_cast<double>(batch.size());
  RecordProperty("optimum", std::to_string(optimum));
  EXPECT_LT(optimum, job.task.target);
  EXPECT_GT(optimum, job.task.target / 1.2);
}

TEST(ListTasks, NamesWhatAUserNeeds) {
  const TemporaryFolder folder;
  const Ended ended = run_tutti({"list", "tasks", "--json"}, {.folder = folder.path()}, 60);
  ASSERT_EQ(ended.exit_code, kExitDone) << ended.err;
  const auto list = nlohmann::json::parse(ended.out, nullptr, false);
  ASSERT_TRUE(list.is_array());
  EXPECT_EQ(list.size(), reference_tasks().size());
  for (const auto& entry : list) {
    for (const char* key : {"name", "learning_task", "data", "model", "metric", "recipe", "remedy"})
      EXPECT_FALSE(entry.at(key).get<std::string>().empty()) << key;
    EXPECT_GT(entry.at("target").get<double>(), 0);
    EXPECT_TRUE(std::filesystem::exists(entry.at("recipe").get<std::string>()));
    EXPECT_EQ(entry.at("data_here").get<bool>(), entry.at("missing").empty());
  }
  const Ended text = run_tutti({"list", "tasks"}, {.folder = folder.path()}, 60);
  for (size_t begin = 0; begin < text.out.size();) {
    const size_t end = text.out.find('\n', begin);
    EXPECT_LE(end - begin, 120U) << text.out.substr(begin, end - begin);
    begin = end + 1;
  }
}

}  // namespace
}  // namespace tutti
