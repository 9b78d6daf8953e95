// Progress as its readers see it: a line on a terminal that stays one line however narrow that is,
// plain lines in a file, objects for programs.
#include <gtest/gtest.h>
#include <pty.h>

#include <filesystem>

#include "fabric/outcome.h"
#include "jobs/progress.h"
#include "tests/support/programs.h"

namespace tutti {
namespace {

using namespace testing_support;
using nlohmann::json;

// Reads what the program writes as it comes: a terminal whose reader is slow stops its writer.
class Terminal {
 public:
  explicit Terminal(unsigned short columns) {
    const winsize size{.ws_row = 24, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
    EXPECT_EQ(openpty(&master_, &slave_, nullptr, nullptr, &size), 0);
    fcntl(master_, F_SETFD, FD_CLOEXEC);
    fcntl(slave_, F_SETFD, FD_CLOEXEC);
    reader_ = std::thread([this] {
      char buffer[4096];
      for (ssize_t got; (got = read(master_, buffer, sizeof buffer)) > 0;)
        text_.append(buffer, static_cast<size_t>(got));
    });
  }
  ~Terminal() {
    if (reader_.joinable()) all();
    close(master_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  int fd() const { return slave_; }
  // Everything that was written, once nobody has it open any more.
  const std::string& all() {
    close(slave_);
    reader_.join();
    return text_;
  }

 private:
  int master_ = -1, slave_ = -1;
  std::thread reader_;
  std::string text_;
};

// What is written between two starts of a line; the command to clear it takes no place.
std::vector<std::string> lines_on(const std::string& text) {
  std::vector<std::string> lines = {""};
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\r' || text[i] == '\n')
      lines.emplace_back();
    else if (text.compare(i, 3, "\033[K") == 0)
      i += 2;
    else
      lines.back() += text[i];
  }
  std::erase(lines, "");
  return lines;
}

class LiveProgress : public testing::Test {
 protected:
  LiveProgress() {
    write_text(folder_ / "job.toml",
               "name = \"a-name-so-long-that-hardly-any-terminal-has-room-for-it\"\n" +
                   small_job().substr(small_job().find('\n') + 1));
  }
  // The lines of progress of a run on a terminal of so many columns.
  std::vector<std::string> lines(unsigned short columns, const std::string& fabric) {
    Terminal terminal(columns);
    const Ended ended = run_tutti({"train", "job.toml", "--set", "cluster.fabric=" + fabric},
                                  {.folder = folder_.path(), .err = terminal.fd()});
    EXPECT_EQ(ended.exit_code, kExitDone);
    std::vector<std::string> found = lines_on(terminal.all());
    EXPECT_FALSE(found.empty());
    for (const std::string& line : found)
      EXPECT_LT(line.size(), columns) << "it wraps, and then cannot be overwritten: " << line;
    return found;
  }
  TemporaryFolder folder_;
};

TEST_F(LiveProgress, FitsAnyTerminal) {
  for (const std::string fabric : {"process", "virtual"}) {
    const std::string wide = lines(200, fabric).back();
    for (const char* part :
         {"a-name-so-long", "step 18/18, ", "loss ", "accuracy ", " samples/s, ", " s left"})
      EXPECT_TRUE(has(wide, part)) << wide;
    const std::string usual = lines(80, fabric).back();
    for (const char* part : {"step 18/18, ", "loss ", "accuracy ", " samples/s, ", " s left"})
      EXPECT_TRUE(has(usual, part)) << usual;
    const std::string narrow = lines(40, fabric).back();
    for (const char* part : {"loss ", "accuracy ", " s left"})
      EXPECT_TRUE(has(narrow, part)) << narrow;
    EXPECT_TRUE(lines(10, fabric).back().starts_with("loss "));
  }
}

// It is gone when the run is over, and the summary stands on lines of its own.
TEST_F(LiveProgress, LeavesTheTerminalClean) {
  Terminal terminal(80);
  run_tutti({"train", "job.toml"}, {.folder = folder_.path(), .err = terminal.fd()});
  EXPECT_TRUE(terminal.all().ends_with("\r\033[K")) << terminal.all();
}

TEST_F(LiveProgress, IsPlainLinesInAFile) {
  for (const Arguments& style : {Arguments{}, Arguments{"--progress", "lines"}}) {
    const Ended ended =
        run_tutti(Arguments{"train", "job.toml"} + style, {.folder = folder_.path()});
    EXPECT_EQ(std::count(ended.err.begin(), ended.err.end(), '\n'), 2) << "an epoch a line";
    for (const char* part : {"epoch 1, step 9: accuracy ", "epoch 2, step 18: accuracy ", "loss "})
      EXPECT_TRUE(has(ended.err, part)) << ended.err;
    EXPECT_FALSE(has(ended.err, "\r") || has(ended.err, "\033")) << ended.err;
  }
}

// Who waits hears of the first steps soon, long before the interval of later lines is over.
TEST(ProgressLines, BeginSoon) {
  Progress progress(ProgressStyle::kLines, "job", {.steps = 1000}, "accuracy");
  testing::internal::CaptureStderr();
  progress.step({.step = 1, .loss = 0.5});
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  progress.step({.step = 2, .loss = 0.25});
  progress.step({.step = 3, .loss = 0.125});
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(text.starts_with("job: step 2/1000, loss 0.250, ")) << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
}

TEST_F(LiveProgress, IsAnObjectALineForPrograms) {
  const Ended ended =
      run_tutti({"train", "job.toml", "--progress", "json"}, {.folder = folder_.path()});
  std::istringstream lines(ended.err);
  json last;
  size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    last = json::parse(line, nullptr, false);
    ASSERT_TRUE(last.is_object()) << ended.err;
    EXPECT_EQ(last.at("total"), 18);
    for (const char* key : {"step", "time_s", "loss"}) EXPECT_TRUE(last.at(key).is_number()) << key;
  }
  EXPECT_GE(count, 2u) << "one for every evaluation";
  EXPECT_EQ(last.at("step"), 18);
  EXPECT_TRUE(last.at("quality").is_number()) << last;
}

}  // namespace
}  // namespace tutti
