// Files of a run: written as a whole, and only regular files are replaced by new ones.
#include "jobs/run_folder.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <future>
#include <iostream>
#include <optional>

#include "core/error.h"
#include "tests/support/jobs.h"

namespace tutti {
namespace {

using namespace testing_support;
namespace fs = std::filesystem;

size_t entries_of(const TemporaryFolder& folder) {
  return static_cast<size_t>(
      std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()));
}

TEST(WriteFile, ReplacesARegularFile) {
  const TemporaryFolder folder;
  write_file(folder / "file", "old and long");
  write_file(folder / "file", "new");
  EXPECT_EQ(read_file(folder / "file"), "new");
  EXPECT_EQ(entries_of(folder), 1u);
}

TEST(WriteFile, GoesWhereALinkLeads) {
  const TemporaryFolder folder;
  fs::create_directory(folder / "below");
  write_file(folder / "below/target", "old");
  fs::create_symlink("below/target", folder / "near");
  fs::create_symlink(folder / "near", folder / "far");
  fs::create_symlink("below/not yet", folder / "dangling");
  write_file(folder / "far", "new");
  write_file(folder / "dangling", "first");
  EXPECT_EQ(read_file(folder / "below/target"), "new");
  EXPECT_EQ(read_file(folder / "below/not yet"), "first");
  for (const char* link : {"near", "far", "dangling"})
    EXPECT_TRUE(fs::is_symlink(folder / link)) << link;
  EXPECT_EQ(entries_of(folder), 4u);
}

TEST(WriteFile, APipeIsWrittenAndStays) {
  const TemporaryFolder folder;
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  fs::create_symlink("pipe", folder / "link");
  const std::string content(300'000, 'x');  // more than it holds at once
  for (const char* name : {"pipe", "link"}) {
    // Opened for both ways it has a reader, so that nobody waits should nothing be written.
    const int holder = open((folder / "pipe").c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_GE(holder, 0);
    auto arrived = std::async(std::launch::async, [&] {
      std::string all(content.size(), ' ');
      for (size_t size = 0; size < all.size();) {
        pollfd ready{holder, POLLIN, 0};
        if (poll(&ready, 1, 10'000) != 1) return std::string("nothing came");
        const ssize_t part = read(holder, all.data() + size, all.size() - size);
        if (part <= 0) return std::string("unreadable");
        size += static_cast<size_t>(part);
      }
      return all;
    });
    write_file(folder / name, content);
    EXPECT_EQ(arrived.get(), content) << name;
    close(holder);
  }
  EXPECT_TRUE(fs::is_fifo(folder / "pipe"));
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
  EXPECT_EQ(entries_of(folder), 2u);
}

// By "-", or by a name that leads there: what was printed before and comes after is kept.
TEST(WriteFile, ToStandardOutput) {
  const TemporaryFolder folder;
  fs::create_symlink("/proc/self/fd/1", folder / "output");
  testing::internal::CaptureStdout();
  std::cout << "before ";
  write_file("-", "dash ");
  write_file(folder / "output", "link ");
  std::cout << "after" << std::flush;
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "before dash link after");
  EXPECT_TRUE(fs::is_symlink(folder / "output"));
  EXPECT_FALSE(fs::exists("-"));
}

TEST(WriteFile, WhatCannotBeWrittenIsNamedAndLeavesNothing) {
  const TemporaryFolder folder;
  fs::create_directory(folder / "directory");
  const auto problem = [&](const std::string& name) -> std::string {
    try {
      write_file(folder / name, "content");
    } catch (const DataError& error) {
      return error.what();
    }
    return "";
  };
  for (const char* name : {"directory", "directory/nowhere/file"})
    EXPECT_TRUE(problem(name).starts_with(folder / name + ": cannot be written: ")) << name;
  EXPECT_TRUE(fs::is_empty(folder / "directory"));
  EXPECT_EQ(entries_of(folder), 1u);
}

TEST(RunFolders, AreLockedUntilTheRunHasEnded) {
  const TemporaryFolder folder;
  std::optional<RunFolder> first = create_run_folder(folder / "run", "name");
  write_file(folder / "run/node-0.log", "of the first");
  EXPECT_THROW(create_run_folder(folder / "run", "name"), ConfigError);
  EXPECT_EQ(read_file(folder / "run/node-0.log"), "of the first");
  first.reset();  // it was killed: there is no run.json
  EXPECT_EQ(create_run_folder(folder / "run", "name").path, folder / "run");
  EXPECT_FALSE(fs::exists(folder / "run/node-0.log"));
}

// A run may have come into the folder while its lock was waited for.
TEST(RunFolders, AreNotTakenFromARunThatEndsMeanwhile) {
  const TemporaryFolder folder;
  std::optional<RunFolder> first = create_run_folder(folder / "run", "name");
  auto second = std::async(std::launch::async, [&]() -> std::string {
    try {
      create_run_folder(folder / "run", "name");
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  });
  // A lock is waited for a second. Should the second one come too late to wait, it is refused, too.
  EXPECT_EQ(second.wait_for(std::chrono::milliseconds(200)), std::future_status::timeout);
  write_file(folder / "run/run.json", "{}");
  first.reset();
  EXPECT_NE(second.get().find("already holds a run"), std::string::npos);
}

}  // namespace
}  // namespace tutti
