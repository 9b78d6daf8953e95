// Damaged job files: a job or a ConfigError, never anything else.
#include <gtest/gtest.h>

#include <filesystem>

#include "core/error.h"
#include "core/random.h"
#include "jobs/run_folder.h"
#include "tests/support/jobs.h"

namespace tutti {
namespace {

using namespace testing_support;

class TomlFuzz : public testing::Test {
 protected:
  TomlFuzz() {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(TUTTI_SOURCE "/recipes"))
      if (entry.path().extension() == ".toml") recipes_.push_back(read_file(entry.path().string()));
  }
  Job load(const std::string& text) {
    std::filesystem::remove(folder_ / "job.toml");  // to replace a file may wait for the disk
    write_file(folder_ / "job.toml", text);
    return load_job(folder_ / "job.toml", {});
  }
  void expect_job_or_refusal(const std::string& text) {
    ++cases_;
    try {
      Job job = load(text);
      const std::string resolved = resolved_toml(job);
      Job again = load(resolved);
      EXPECT_EQ(resolved_toml(again), resolved) << text;
    } catch (const ConfigError& error) {
      ++refused_;
      EXPECT_NE(std::string(error.what()), "");
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what() << " for\n" << text;
    }
  }
  TemporaryFolder folder_;
  std::vector<std::string> recipes_;
  size_t cases_ = 0, refused_ = 0;
};

TEST_F(TomlFuzz, TruncatedAnywhere) {
  for (const std::string& recipe : recipes_)
    for (size_t size = 0; size < recipe.size(); ++size)
      expect_job_or_refusal(recipe.substr(0, size));
  EXPECT_GT(refused_, cases_ / 10);
  EXPECT_LT(refused_, cases_);
}

TEST_F(TomlFuzz, FlippedBits) {
  Random random(2, Stream::kTest);
  for (const std::string& recipe : recipes_)
    for (int i = 0; i < 500; ++i) {
      std::string damaged = recipe;
      for (uint64_t flips = 1 + random.below(3); flips > 0; --flips) {
        char& byte = damaged[random.below(damaged.size())];
        byte = static_cast<char>(byte ^ (1 << random.below(8)));
      }
      expect_job_or_refusal(damaged);
    }
  EXPECT_GE(cases_, 2000u);
  EXPECT_GT(refused_, cases_ / 2);
}

// Values of the wrong kind and size at every key of the recipes.
TEST_F(TomlFuzz, ReplacedValues) {
  const char* values[] = {"-1",           "0",
                          "1e308",        "\"\"",
                          "[]",           "{}",
                          "true",         "[[1]]",
                          "1979-05-27",   "\"\\u0000\"",
                          "[1, 2.5]",     "nan",
                          "{ kind = 3 }", "9223372036854775807",
                          "[\"x\", {}]"};
  for (const std::string& recipe : recipes_)
    for (size_t line = 0; line < recipe.size(); line = recipe.find('\n', line) + 1) {
      const size_t end = recipe.find('\n', line);
      const size_t equals = recipe.find('=', line);
      if (end == std::string::npos) break;
      if (equals == std::string::npos || equals > end) continue;
      for (const char* value : values)
        expect_job_or_refusal(recipe.substr(0, equals + 1) + value + recipe.substr(end));
    }
  EXPECT_GE(cases_, 1000u);
}

TEST_F(TomlFuzz, Overrides) {
  Random random(3, Stream::kTest);
  const std::string alphabet = "taskmodel.=[]{}\"'#\n 01-ekind,\\\xff";
  for (int i = 0; i < 3000; ++i) {
    std::string text = i % 2 ? "task.model=" : "";
    for (uint64_t size = random.below(12); size > 0; --size)
      text.push_back(alphabet[random.below(alphabet.size())]);
    try {
      load_job("", {text, "task.model.kind=mlp"});
    } catch (const ConfigError&) {
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what() << " for --set " << text;
    }
  }
}

TEST_F(TomlFuzz, DeepAndLong) {
  expect_job_or_refusal("a = " + std::string(100'000, '['));
  expect_job_or_refusal("name = \"" + std::string(1'000'000, 'x') + "\"");
  expect_job_or_refusal(std::string(100'000, '\0'));
  std::string dotted = "a";
  for (int i = 0; i < 10'000; ++i) dotted += ".a";
  expect_job_or_refusal(dotted + " = 1");
  expect_job_or_refusal("[" + dotted + "]");
}

}  // namespace
}  // namespace tutti
