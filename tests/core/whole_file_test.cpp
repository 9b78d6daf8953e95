// Files that are whole or not there, whoever is killed while writing them.
#include "core/whole_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>

#include "core/error.h"
#include "core/temporary_folder.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;
using Names = std::set<std::string>;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

class WholeFileTest : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_ / name; }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name)) << text;
  }
  void publish(const std::string& name, std::string_view text) const {
    WholeFile file(path(name));
    file.write(bytes_of(text));
    file.publish();
  }
  Names names() const {
    Names found;
    for (const auto& entry : fs::directory_iterator(folder_.path()))
      found.insert(entry.path().filename().string());
    return found;
  }
  std::string content(const std::string& name) const {
    std::ifstream file(path(name));
    return {std::istreambuf_iterator<char>(file), {}};
  }
  bool has_nameless_files() const {
    const int file = open(folder_.path().c_str(), O_TMPFILE | O_WRONLY, 0600);
    if (file >= 0) close(file);
    return file >= 0;
  }

  TemporaryFolder folder_;
};

// In a process of its own; returns that one's number, which nobody has any more.
pid_t killed_in(const std::function<void()>& work) {
  const pid_t child = fork();
  if (child == 0) {
    work();
    raise(SIGKILL);
  }
  waitpid(child, nullptr, 0);
  return child;
}

TEST_F(WholeFileTest, IsThereWhenItIsWhole) {
  {
    WholeFile file(path("a"));
    file.write(bytes_of("one "));
    file.write({});
    file.write(bytes_of("two"));
    EXPECT_EQ(content("a"), "");
    file.sync();
    file.publish();
  }
  EXPECT_EQ(names(), Names{"a"});
  EXPECT_EQ(content("a"), "one two");
  write("b", "");
  EXPECT_EQ(fs::status(path("a")).permissions(), fs::status(path("b")).permissions());
}

TEST_F(WholeFileTest, TakesThePlaceOfAnother) {
  write("a", "a long story");
  publish("a", "short");
  EXPECT_EQ(content("a"), "short");
  EXPECT_EQ(names(), Names{"a"});
}

TEST_F(WholeFileTest, IsGoneIfItIsGivenUp) {
  write("a", "old");
  for (const char* name : {"a", "b"}) {
    WholeFile file(path(name));
    file.write(bytes_of("new"));
  }
  EXPECT_EQ(content("a"), "old");
  EXPECT_EQ(names(), Names{"a"});
}

TEST_F(WholeFileTest, AKillLeavesNothing) {
  if (!has_nameless_files()) GTEST_SKIP() << "this file system has no files without names";
  write("old", "old");
  for (const char* name : {"old", "new"})
    killed_in([&] {
      WholeFile file(path(name));
      file.write(bytes_of(std::string(1'000'000, 'x')));
    });
  EXPECT_EQ(names(), Names{"old"});
  EXPECT_EQ(content("old"), "old");
}

// For the moment in which a file is replaced, and for file systems that have no other way.
TEST_F(WholeFileTest, RemovesWhatTheDeadHaveLeft) {
  const std::string dead = std::to_string(killed_in([] {}));
  const std::string alive = std::to_string(getppid());
  const Names kept{"a",        "a." + alive + ".tmp", "a.tmp",
                   "a.1x.tmp", "a." + dead,           "." + dead + "tmp"};
  for (const std::string& name : kept) write(name, "kept");
  for (const std::string name : {"a.", "run.json."}) write(name + dead + ".tmp", "half");
  write("a." + std::to_string(getpid()) + ".tmp", "of one that had our number");
  publish("a", "new");
  EXPECT_EQ(names(), kept);
  EXPECT_EQ(content("a"), "new");
}

TEST_F(WholeFileTest, SaysWhyItCannotBeWritten) {
  write("file", "");
  fs::create_directory(path("directory"));
  for (const std::string name : {"missing/a", "file/a", "directory"}) {
    try {
      publish(name, "text");
      ADD_FAILURE() << name;
    } catch (const DataError& error) {
      EXPECT_NE(std::string(error.what()).find(path(name) + ": cannot be written: "),
                std::string::npos)
          << error.what();
    }
  }
  EXPECT_EQ(names(), (Names{"directory", "file"}));
}

}  // namespace
}  // namespace tutti
