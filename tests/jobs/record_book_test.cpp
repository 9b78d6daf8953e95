// The measurements of a run: all are there, each once, whoever adds them and whoever dies.
#include "jobs/record_book.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <optional>
#include <utility>
#include <vector>

#include "core/temporary_folder.h"
#include "jobs/run_folder.h"

namespace tutti {
namespace {

EvaluationRow row_of(int64_t samples, double time_s = 1) {
  return {.step = samples / 10, .time_s = time_s, .epoch = 0.5, .samples = samples, .loss = NAN,
          .quality = 0.5};
}

std::vector<int64_t> samples_in(const std::vector<EvaluationRow>& rows) {
  std::vector<int64_t> samples;
  for (const EvaluationRow& row : rows) samples.push_back(row.samples);
  return samples;
}

TEST(RecordBook, HasEveryMeasurementOnce) {
  RecordBook book;
  RecordBook::Reader reader(book);
  EXPECT_TRUE(reader.news().empty());
  book.add(4, row_of(10));
  book.add(4, row_of(20));
  EXPECT_EQ(samples_in(reader.news()), (std::vector<int64_t>{10, 20}));
  // A replica goes on.
  for (const int64_t samples : {10, 20, 30}) book.add(5, row_of(samples, 1.5));
  EXPECT_EQ(samples_in(reader.news()), (std::vector<int64_t>{30}));
  for (const int64_t samples : {20, 30}) book.add(5, row_of(samples, 1.5));  // and says it again
  EXPECT_TRUE(reader.news().empty());
  book.add(5, row_of(30, 2));  // another measurement, without a step between
  EXPECT_EQ(samples_in(RecordBook::Reader(book).news()), (std::vector<int64_t>{10, 20, 30, 30}));
}

TEST(RecordBook, OutlivesItsWritersAndFreesTheirPlace) {
  RecordBook book;
  const pid_t writer = fork();
  if (writer == 0) {
    const auto keeping = book.try_keep();
    for (int64_t samples = 1; samples <= 100; ++samples) book.add(0, row_of(samples));
    if (keeping) kill(getpid(), SIGKILL);
    _exit(1);
  }
  int status = 0;
  waitpid(writer, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(RecordBook::Reader(book).news().size(), 100u);
  std::optional<Keeping> keeping = book.try_keep();
  EXPECT_TRUE(keeping);
  EXPECT_FALSE(book.try_keep()) << "two of one process would write the same files";
  keeping.reset();
  EXPECT_TRUE(book.try_keep());
}

TEST(RunFolder, HalfALineIsRemoved) {
  const TemporaryFolder folder;
  const std::string path = folder / "series.csv";
  EXPECT_EQ(last_whole_line(path), "");
  const std::pair<const char*, const char*> cases[] = {
      {"", ""}, {"step,ti", ""}, {"step\n", "step"}, {"step\n1,2\n", "1,2"}, {"a\n1,2\n3,", "1,2"}};
  for (const auto& [content, last] : cases) {
    write_file(path, content);
    EXPECT_EQ(last_whole_line(path), last) << content;
    const std::string left = read_file(path);
    EXPECT_EQ(left, std::string(content).substr(0, left.size()));
    EXPECT_TRUE(left.empty() || left.back() == '\n') << left;
  }
}

}  // namespace
}  // namespace tutti
