// `tutti predict` needs only the folder of a run, and refuses a folder that was changed.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/cli/predict.h"

namespace tutti {
namespace {

using namespace predict_tests;

// The user should hear why there is nothing to predict with, and what to do.
TEST_F(Predict, RunsWithoutParametersAreExplained) {
  const auto expect = [&](const std::vector<std::string>& parts) {
    const Ended ended = run({"predict", "run"});
    EXPECT_EQ(ended.exit_code, kExitBadJob);
    for (const std::string& part : parts) EXPECT_TRUE(has(ended.err, part)) << ended.err;
    std::filesystem::remove_all(folder_ / "run");
  };
  write_text(folder_ / "job.toml", small_job());
  run({"train", "job.toml", "--out", "run", "--set", "cluster.fabric=virtual", "--set",
       "cluster.cost_only=true"});
  expect({"run: ", "costs only", "cluster.cost_only=false"});

  write_text(folder_ / "endless.toml", endless_job());
  Subprocess process({"train", "endless.toml", "--out", "run"}, {.folder = folder_.path()});
  ASSERT_TRUE(eventually([&] { return evaluations_in(folder_ / "run") > 0; }, 30));
  process.signal(SIGINT);
  EXPECT_EQ(process.wait(kSoonS).exit_code, kExitInterrupted);
  expect({"ended as \"interrupted\"", "train it again", "tutti train run/job.toml"});

  train_on_flowers();
  std::filesystem::remove(folder_ / "run/parameters.safetensors");
  expect({"lost its parameters.safetensors", "train it again"});
  train_on_flowers();
  std::filesystem::remove(folder_ / "run/parameters.safetensors");
  std::filesystem::remove(folder_ / "run/run.json");
  expect({"did not end", "train it again"});
  train_on_flowers();
  std::filesystem::remove(folder_ / "flowers.csv");
  expect({"flowers.csv", "test samples of the run", "put it back"});
}

// Neither the run nor the samples are overwritten by what is predicted from them.
TEST_F(Predict, OverwritesNothingThatItReads) {
  train_on_flowers();
  write_text(folder_ / "new.csv", table("", flowers(30, false)));
  const std::string record = content_of(folder_ / "run/run.json");
  for (const char* output : {"run/run.json", "./run/../run/parameters.safetensors", "new.csv"}) {
    const Ended ended = run({"predict", "run", "--data", "new.csv", "--output", output});
    EXPECT_EQ(ended.exit_code, kExitBadJob) << output;
    EXPECT_TRUE(has(ended.err, std::string("--output ") + output)) << ended.err;
  }
  EXPECT_EQ(content_of(folder_ / "run/run.json"), record);
  for (const char* output : {"run/new.csv", "answers.csv", "answers.csv"})
    EXPECT_EQ(run({"predict", "run", "--data", "new.csv", "--output", output}).exit_code,
              kExitDone);
}

// The run keeps its names, scales and shapes: its training data may be gone or replaced.
TEST_F(Predict, NeedsNothingButTheRun) {
  Lines rows = flowers(150, true);
  write_text(folder_ / "flowers.csv", table("a,b,c,d,kind", rows));
  train("{ kind = \"csv\", path = \"flowers.csv\", standardise = true }", "logistic");
  write_text(folder_ / "new.csv", table("", flowers(30, false)));
  const Arguments predict = {"predict", "run", "--data", "new.csv"};
  const std::string expected = run(predict).out;
  ASSERT_FALSE(expected.empty());
  // The new class comes before the others, and the features have another scale.
  rows.insert(rows.begin(), "1000,1000,1000,1000,aster");
  write_text(folder_ / "flowers.csv", table("a,b,c,d,kind", rows));
  EXPECT_EQ(run(predict).out, expected);
  const Ended test = run({"predict", "run"});
  EXPECT_EQ(test.exit_code, kExitBadJob);
  EXPECT_TRUE(has(test.err, "flowers.csv: is not the data that the run was trained on"))
      << test.err;
  EXPECT_TRUE(has(test.err, "--data")) << test.err;
  std::filesystem::remove(folder_ / "flowers.csv");
  EXPECT_EQ(run(predict).out, expected);
}

// Runs of older versions have no description of their data, so their training data is read.
TEST_F(Predict, RunsOfOlderVersionsReadTheirTrainingData) {
  train_on_flowers();
  const Ended before = run({"predict", "run"});
  EXPECT_FALSE(has(before.err, "data.json")) << before.err;
  std::filesystem::remove(folder_ / "run/data.json");
  const Ended after = run({"predict", "run"});
  EXPECT_EQ(after.exit_code, kExitDone);
  EXPECT_EQ(after.out, before.out);
  EXPECT_TRUE(has(after.err, "has no data.json")) << after.err;
  std::filesystem::remove(folder_ / "flowers.csv");
  write_text(folder_ / "new.csv", table("", flowers(3, false)));
  const Ended gone = run({"predict", "run", "--data", "new.csv"});
  EXPECT_EQ(gone.exit_code, kExitBadJob);
  EXPECT_TRUE(has(gone.err, "needed to predict")) << gone.err;
}

TEST_F(Predict, ADescriptionThatWasChangedIsRefused) {
  train_on_flowers();
  const std::string whole = content_of(folder_ / "run/data.json");
  const auto replaced = [&](const std::string& from, const std::string& to) {
    std::string text = whole;
    text.replace(text.find(from), from.size(), to);
    return text;
  };
  for (const auto& [text, part] : std::vector<std::pair<std::string, std::string>>{
           {replaced("\"rose red\",\"tulip\"", "\"tulip\",\"rose red\""), "checksum differs"},
           {replaced("\"schema\":1", "\"schema\":2"), "has schema 2"},
           {replaced("[4]", "[9007199254740993]"), "checksum differs"},
           {whole.substr(0, whole.size() / 2), "is damaged"},
           {"", "is damaged"},
           {"[]", "is damaged"},
           {"{\"schema\":1}", "is damaged"}}) {
    write_text(folder_ / "run/data.json", text);
    const Ended ended = run({"predict", "run"});
    EXPECT_EQ(ended.exit_code, kExitBadJob) << text;
    EXPECT_TRUE(has(ended.err, "run/data.json")) << ended.err;
    EXPECT_TRUE(has(ended.err, part)) << ended.err;
    EXPECT_EQ(ended.out, "");
  }
}

// The quality in the record is not that of other weights of the same shape.
TEST_F(Predict, ParametersThatWereChangedAreRefused) {
  train_on_flowers();
  const std::string path = folder_ / "run/parameters.safetensors", whole = content_of(path);
  std::string changed = whole;
  changed[changed.size() - 2] ^= 1;
  write_text(path, changed);
  const Ended refused = run({"predict", "run"});
  EXPECT_EQ(refused.exit_code, kExitBadJob);
  EXPECT_TRUE(has(refused.err, "parameters.safetensors: was changed")) << refused.err;
  write_text(path, whole);
  const Ended fine = run({"predict", "run"});
  EXPECT_EQ(fine.exit_code, kExitDone);
  EXPECT_FALSE(has(fine.err, "parameters_sha256")) << fine.err;
  json record = json_in(folder_ / "run/run.json");
  record.erase("parameters_sha256");
  write_text(folder_ / "run/run.json", record.dump());
  const Ended silent = run({"predict", "run"});
  EXPECT_EQ(silent.out, fine.out);
  EXPECT_TRUE(has(silent.err, "its run.json has no parameters_sha256")) << silent.err;
  std::filesystem::remove(folder_ / "run/run.json");
  EXPECT_TRUE(has(run({"predict", "run"}).err, "has no run.json with a parameters_sha256"));
}

// A folder stands in the place of a file, or values are nested so deep that whoever copies them
// would run out of stack.
TEST_F(Predict, FilesThatCannotBeAreNamed) {
  train_on_flowers();
  const std::string deep(200'000, '[');
  const std::string end(200'000, ']');
  for (const char* name : {"data.json", "run.json"}) {
    const std::string path = folder_ / ("run/" + std::string(name));
    const std::string whole = content_of(path);
    write_text(path, "{\"schema\":1,\"checksum\":\"x\",\"a\":" + deep + end + "}");
    const Ended nested = run({"predict", "run"});
    EXPECT_TRUE(nested.exit_code == kExitBadJob || nested.exit_code == kExitDone) << nested.err;
    EXPECT_FALSE(has(nested.err, "json.exception")) << nested.err;
    std::filesystem::remove(path);
    std::filesystem::create_directory(path);
    const Ended folder = run({"predict", "run"});
    EXPECT_EQ(folder.exit_code, kExitBadJob) << folder.err;
    EXPECT_TRUE(has(folder.err, std::string(name) + ": cannot be read: it is a folder"))
        << folder.err;
    std::filesystem::remove(path);
    write_text(path, whole);
  }
}

}  // namespace
}  // namespace tutti
