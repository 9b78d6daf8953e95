// Whatever is chosen learns as it comes: every optimizer, and every optimizer of a federated
// server, with its defaults on a reference task.
#include <gtest/gtest.h>

#include <filesystem>

#include "fabric/outcome.h"
#include "optimizers/optimizer.h"
#include "strategies/federated_averaging/config.h"
#include "tests/support/programs.h"

namespace tutti {
namespace {

using namespace testing_support;

// The accuracy on validation after each of two epochs of tabular-mushroom without its [optimizer].
std::vector<double> accuracies(const Settings& settings) {
  const TemporaryFolder folder;
  const std::string recipe = content_of(TUTTI_SOURCE "/recipes/tasks/tabular-mushroom.toml");
  const size_t begin = recipe.find("[optimizer]"), end = recipe.find("[strategy]");
  EXPECT_LT(begin, end);
  write_text(folder.path() + "/job.toml", recipe.substr(0, begin) + recipe.substr(end));
  std::vector<std::string> words = {
      "train", "job.toml", "--json",        "--quiet", "--out",
      "run",   "--set",    "task.epochs=2", "--set",   "task.eval_every=1"};
  for (const std::string& setting : settings) {
    words.emplace_back("--set");
    words.push_back(setting);
  }
  const Ended ended = run_tutti(words, {.folder = folder.path()});
  EXPECT_EQ(ended.exit_code, kExitDone) << ended.err;
  const auto record = nlohmann::json::parse(ended.out, nullptr, false);
  std::vector<double> values;
  if (record.is_object())
    for (const auto& row : record["evaluations"]) values.push_back(row["quality"]);
  EXPECT_EQ(values.size(), 2u);
  values.resize(2);
  return values;
}

const Settings kAlone = {"strategy.kind=solo", "cluster.workers=1"};

TEST(Defaults, EveryOptimizerBeatsTheFirstEpochOfSgdInTwo) {
  const double sgd = accuracies(kAlone).front();
  for (const OptimizerEntry& entry : optimizer_catalog())
    EXPECT_GT(accuracies(kAlone + Settings{"optimizer.kind=" + std::string(entry.name)}).back(),
              sgd)
        << entry.name;
}

// Two epochs are only two rounds here, so it is the first epoch at the rate of the recipe.
TEST(Defaults, EveryServerOptimizerBeatsTheFirstEpochOfSgdInTwo) {
  const double sgd = accuracies(kAlone + Settings{"optimizer.lr=0.03"}).front();
  for (const std::string_view kind : words(federated_averaging::ServerKind()))
    EXPECT_GT(
        accuracies({"strategy.kind=federated_averaging", "strategy.server=" + std::string(kind)})
            .back(),
        sgd)
        << kind;
}

}  // namespace
}  // namespace tutti
