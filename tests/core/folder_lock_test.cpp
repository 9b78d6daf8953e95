#include "core/folder_lock.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "core/error.h"
#include "core/temporary_folder.h"

namespace tutti {
namespace {

class FolderLocks : public testing::Test {
 protected:
  const TemporaryFolder home_;
  const std::string folder_ = home_.path();
};

TEST_F(FolderLocks, AreHeldByOneAtATime) {
  FolderLock first(folder_);
  EXPECT_THROW(FolderLock second(folder_), ConfigError);
  FolderLock moved = std::move(first);
  EXPECT_THROW(FolderLock second(folder_), ConfigError);
  moved = FolderLock();
  EXPECT_NO_THROW(FolderLock second(folder_));
}

TEST_F(FolderLocks, OfWhoWasKilledAreNoObstacle) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    const FolderLock lock(folder_);
    (void)!write(ready[1], "x", 1);
    pause();
    _exit(0);
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  EXPECT_THROW(FolderLock second(folder_), ConfigError);
  kill(child, SIGKILL);
  EXPECT_NO_THROW(FolderLock second(folder_));
  waitpid(child, nullptr, 0);
  close(ready[0]);
  close(ready[1]);
}

TEST_F(FolderLocks, OfAFolderThatIsNotThereNameIt) {
  try {
    FolderLock lock(folder_ + "/none");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find(folder_ + "/none"), std::string::npos);
  }
}

}  // namespace
}  // namespace tutti
