// Damaged run folders and disks that are full: an error that says so, never a crash, and nothing
// half-written under a final name.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "core/random.h"
#include "fabric/outcome.h"
#include "tests/support/programs.h"

namespace tutti {
namespace {

using namespace testing_support;

class Damage : public testing::Test {
 protected:
  void SetUp() override {
    write_text(folder_ / "job.toml", small_job());
    ASSERT_EQ(run({"train", "job.toml", "--out", "run", "--quiet"}).exit_code, kExitDone);
  }
  Ended run(const Arguments& arguments, rlim_t file_size = RLIM_INFINITY) {
    return run_tutti(arguments, {.folder = folder_.path(), .file_size = file_size});
  }
  // Damages one file of the run in several ways; `command` works with it or says what is wrong.
  void expect_no_crash(const std::string& file, const Arguments& command) {
    const std::string whole = content_of(folder_ / file);
    ASSERT_FALSE(whole.empty());
    Random random(11, Stream::kTest);
    for (int i = 0; i < 12; ++i) {
      std::string damaged = whole;
      const size_t at = random.below(whole.size());
      if (i % 2)
        damaged.resize(at);
      else
        damaged[at] = static_cast<char>(damaged[at] ^ (1 << random.below(8)));
      write_text(folder_ / file, damaged);
      const Ended ended = run(command);
      EXPECT_TRUE(ended.exit_code == kExitDone || ended.exit_code == kExitBadJob)
          << file << " damaged at " << at << ": exit code " << ended.exit_code << "\n"
          << ended.err;
      EXPECT_NE(ended.exit_code == kExitBadJob, ended.err.find("tutti: ") == std::string::npos);
    }
    write_text(folder_ / file, whole);
    EXPECT_EQ(run(command).exit_code, kExitDone);
  }
  // Every file of the folder but those that grow row by row is complete or not there.
  void expect_nothing_half_written(const std::string& name) {
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / name))
      EXPECT_NE(entry.path().extension(), ".tmp") << entry.path();
    const std::string record = folder_ / (name + "/run.json");
    EXPECT_TRUE(!std::filesystem::exists(record) || json_in(record).is_object());
  }
  TemporaryFolder folder_;
};

// To open a pipe is to wait for whoever writes to it, here nobody.
TEST_F(Damage, PipesInThePlaceOfFilesAreNamed) {
  const std::vector<std::pair<std::string, Arguments>> uses = {
      {"run/parameters.safetensors", {"predict", "run"}},
      {"run/data.json", {"predict", "run"}},
      {"run/run.json", {"predict", "run"}},
      {"run/run.json", {"show", "run"}},
      {"run/series.csv", {"report", "run"}},
      {"run/job.toml", {"predict", "run"}},
      {"run/job.toml", {"check", "run/job.toml"}},
      {"job.toml", {"train", "job.toml"}}};
  for (const auto& [file, command] : uses) {
    const std::string path = folder_ / file;
    const std::string whole = content_of(path);
    std::filesystem::remove(path);
    ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
    const Ended ended = run(command);
    EXPECT_EQ(ended.exit_code, kExitBadJob) << command[0] << " " << file << "\n" << ended.err;
    EXPECT_NE(ended.err.find(file + ": cannot be read: it is a pipe, not a file"),
              std::string::npos)
        << ended.err;
    std::filesystem::remove(path);
    write_text(path, whole);
  }
  // Nor is anything written to one.
  std::filesystem::create_directory(folder_ / "again");
  ASSERT_EQ(mkfifo((folder_ / "again/series.csv").c_str(), 0600), 0);
  const Ended ended = run({"train", "job.toml", "--out", "again", "--quiet"});
  EXPECT_EQ(ended.exit_code, kExitBadJob) << ended.err;
  EXPECT_NE(ended.err.find("series.csv: is a pipe or a socket"), std::string::npos) << ended.err;
}

TEST_F(Damage, Parameters) { expect_no_crash("run/parameters.safetensors", {"predict", "run"}); }
TEST_F(Damage, Description) { expect_no_crash("run/data.json", {"predict", "run"}); }
TEST_F(Damage, Job) { expect_no_crash("run/job.toml", {"check", "run/job.toml"}); }
TEST_F(Damage, Record) { expect_no_crash("run/run.json", {"show", "run"}); }

TEST_F(Damage, RecordsOfAnotherKind) {
  for (const char* text : {"{}", "[]", "null", "{\"quality\": 1, \"time\": 2, \"schema\": 1}",
                           "{\"quality\": {}, \"time\": {}, \"schema\": 1}",
                           "{\"quality\": {}, \"time\": {}, \"schema\": \"one\"}",
                           "{\"quality\": {}, \"time\": {}, \"schema\": 1, \"name\": 3}"}) {
    write_text(folder_ / "run/run.json", text);
    const Ended ended = run({"show", "run"});
    EXPECT_TRUE(ended.exit_code == kExitDone || ended.exit_code == kExitBadJob)
        << text << ended.err;
  }
}

TEST_F(Damage, ParametersThatAreNotThere) {
  std::filesystem::remove(folder_ / "run/parameters.safetensors");
  const Ended ended = run({"predict", "run"});
  EXPECT_EQ(ended.exit_code, kExitBadJob);
  EXPECT_TRUE(has(ended.err, "parameters.safetensors")) << ended.err;
}

// A full disk is not a mistake in the job. The parameters (about 1 MB) do not fit; the rest does.
TEST_F(Damage, DiskFullAtTheEndOfTraining) {
  for (const std::string fabric : {"process", "virtual"}) {
    const Ended ended = run({"train", "job.toml", "--out", fabric, "--set", "task.model=mlp",
                             "--set", "task.model.hidden=[20000]", "--set",
                             "cluster.fabric=" + fabric, "--set", "task.max_steps=1"},
                            100'000);
    EXPECT_EQ(ended.exit_code, kExitInternal);
    EXPECT_TRUE(has(ended.err, "parameters.safetensors: cannot be written: File too large"))
        << ended.err;
    EXPECT_FALSE(std::filesystem::exists(folder_ / (fabric + "/parameters.safetensors")));
    expect_nothing_half_written(fabric);
    EXPECT_EQ(json_in(folder_ / (fabric + "/run.json"))["status"], "failed");
  }
}

// The rows of the steps do not fit: said while training, or at its end if they were buffered.
TEST_F(Damage, DiskFullDuringTraining) {
  for (const std::string epochs : {"6", "10000"}) {
    const std::string out = "full-" + epochs;
    const Ended ended = run({"train", "job.toml", "--out", out, "--quiet", "--set",
                             "task.epochs=" + epochs, "--set", "task.eval_every=10000"},
                            epochs == "6" ? 2000 : 100'000);
    EXPECT_EQ(ended.exit_code, kExitInternal) << ended.err;
    EXPECT_TRUE(has(ended.err, "series.csv: cannot be written: File too large")) << ended.err;
    expect_nothing_half_written(out);
  }
}

TEST_F(Damage, DiskFullBeforeTheStart) {
  const Ended ended = run({"train", "job.toml", "--out", "none", "--json"}, 400);
  EXPECT_EQ(ended.exit_code, kExitInternal) << ended.err;
  EXPECT_TRUE(has(ended.err, "none/job.toml: cannot be written")) << ended.err;
  EXPECT_TRUE(std::filesystem::is_empty(folder_ / "none"));
}

TEST_F(Damage, DiskFullWhilePredicting) {
  const Ended ended = run({"predict", "run", "-o", "predicted.csv"}, 100);
  EXPECT_EQ(ended.exit_code, kExitInternal);
  EXPECT_TRUE(has(ended.err, "predicted.csv: cannot be written")) << ended.err;
  EXPECT_FALSE(std::filesystem::exists(folder_ / "predicted.csv"));
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
    EXPECT_NE(entry.path().extension(), ".tmp");
}

}  // namespace
}  // namespace tutti
