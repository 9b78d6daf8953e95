#include "jobs/prediction_history.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <thread>

#include "core/described_json.h"
#include "core/shallow_json.h"
#include "fabric/process/control_socket.h"
#include "jobs/versions.h"

namespace tutti {
namespace {

constexpr off_t kMostHistory = 1 << 20;  // bytes; then the older half goes

constexpr std::chrono::seconds kPatience(2);  // a lock is held for milliseconds
constexpr std::chrono::milliseconds kPause(10);
constexpr double kMostRatio = 1e6;  // of a time to its prediction, and of that to the time

// A stop ends the waiting, too: the signal would be in vain otherwise.
bool wait_for_lock(int file, int lock, const std::atomic<bool>& stop) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (flock(file, lock | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return false;
    if (stop || std::chrono::steady_clock::now() > end) {
      errno = EWOULDBLOCK;
      return false;
    }
    std::this_thread::sleep_for(kPause);
  }
  return true;
}

std::string reason_of(int error) {
  return error == EWOULDBLOCK ? "another program keeps it locked" : std::strerror(error);
}

// Opens it with a lock that all who add to it take. What is no regular file is not waited for.
process::FileDescriptor open_locked(const std::string& path, int flags, int lock,
                                    const std::atomic<bool>& stop) {
  process::FileDescriptor file(open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK, 0644));
  struct stat status {};
  if (file.get() < 0 || fstat(file.get(), &status) != 0) return process::FileDescriptor(-1);
  if (!S_ISREG(status.st_mode)) {
    errno = EINVAL;
    return process::FileDescriptor(-1);
  }
  if (!wait_for_lock(file.get(), lock, stop)) {
    const int error = errno;
    file = process::FileDescriptor(-1);
    errno = error;  // as closing it may have changed it
  }
  return file;
}

// The last bytes of a file, from the beginning of a line.
std::string end_of(int file, off_t most) {
  const off_t size = lseek(file, 0, SEEK_END);
  if (size <= 0) return "";
  const off_t begin = std::max<off_t>(0, size - most);
  std::string text(static_cast<size_t>(size - begin), '\0');
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t got =
        pread(file, text.data() + done, text.size() - done, begin + static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    done += static_cast<size_t>(got);
  }
  text.resize(done);
  if (begin == 0) return text;
  const size_t line = text.find('\n');
  return line == std::string::npos ? "" : text.substr(line + 1);
}

bool write_at(int file, const std::string& text, off_t at) {
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t wrote =
        pwrite(file, text.data() + done, text.size() - done, at + static_cast<off_t>(done));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return false;
    done += static_cast<size_t>(wrote);
  }
  return true;
}

bool add_line(int file, const std::string& line) {
  off_t size = lseek(file, 0, SEEK_END);
  if (size + static_cast<off_t>(line.size()) > kMostHistory) {
    const std::string newest = end_of(file, kMostHistory / 2);
    if (!write_at(file, newest, 0)) return false;
    size = static_cast<off_t>(newest.size());
    if (ftruncate(file, size) != 0) return false;
  }
  char last = '\n';  // half a line of somebody who was killed is ended first
  if (size > 0 && pread(file, &last, 1, size - 1) != 1) return false;
  return write_at(file, (last == '\n' ? "" : "\n") + line, size);
}

// No prediction is off by more than this unless somebody changed the line: one such line would be
// the error of all advice to come.
bool is_plausible(const PredictionOutcome& o) {
  const double ratio = o.took_s / o.predicted_s;
  return std::isfinite(ratio) && ratio < kMostRatio && ratio > 1 / kMostRatio;
}

std::optional<PredictionOutcome> outcome_in(const std::string& line) {
  const nlohmann::json value = parse_shallow_json(line);
  if (!value.is_object()) return std::nullopt;
  try {
    const auto outcome = described_by<PredictionOutcome>(value);
    return is_plausible(outcome) ? std::optional(outcome) : std::nullopt;
  } catch (const Mismatch&) {
    return std::nullopt;
  }
}

}  // namespace

void visit(RecordVisitor& v, PredictionOutcome& o) {
  const auto positive = [&](double value, const char* key) {
    if (v.reads()) v.require(std::isfinite(value) && value > 0, key, "is not a number above 0");
  };
  v.field("made", o.made, "When the run ended, UTC");
  v.field("task", o.task, "Fingerprint of the task");
  v.field("job", o.job, "Fingerprint of the job without its cluster and its seed");
  v.field("cluster_name", o.cluster_name, "What the cluster was called");
  v.field("strategy", o.strategy, "Name of the variant");
  std::string obtained(word_of(o.obtained));
  v.field("obtained", obtained, "`measured` or `simulated`");
  if (v.reads()) o.obtained = value_of(obtained, o.obtained);
  v.require(word_of(o.obtained) == obtained, "obtained", "is neither measured nor simulated");
  v.field("predicted_s", o.predicted_s, "Time to target as it was predicted");
  positive(o.predicted_s, "predicted_s");
  v.field("error", o.error, "Half the width of its interval of 90 %, relative");
  v.field("took_s", o.took_s, "Time to target of the run");
  positive(o.took_s, "took_s");
  v.field("program", o.program, "Version of the program");
}

std::vector<PredictionOutcome> read_prediction_history(const std::string& path,
                                                       const HistoryNote& note,
                                                       const std::atomic<bool>& stop) {
  std::vector<PredictionOutcome> outcomes;
  const process::FileDescriptor file = open_locked(path, O_RDONLY, LOCK_SH, stop);
  if (file.get() < 0) {
    if (errno != ENOENT)
      note(fmt::format("{} is ignored, because it cannot be read: {}", path, reason_of(errno)));
    return outcomes;
  }
  const std::string text = end_of(file.get(), kMostHistory);
  int damaged = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    if (end > begin) {
      if (const auto outcome = outcome_in(text.substr(begin, end - begin)))
        outcomes.push_back(*outcome);
      else
        ++damaged;
    }
    begin = end + 1;
  }
  if (damaged > 0)
    note(fmt::format("{}: {} damaged line{} ignored; remove the file to forget all of it", path,
                     damaged, damaged == 1 ? " is" : "s are"));
  return outcomes;
}

void add_to_prediction_history(const std::string& path, const PredictionOutcome& outcome,
                               const HistoryNote& note, const std::atomic<bool>& stop) {
  std::error_code failed;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), failed);
  const process::FileDescriptor file = open_locked(path, O_RDWR | O_CREAT, LOCK_EX, stop);
  if (file.get() >= 0 && add_line(file.get(), json_of(outcome).dump() + "\n")) return;
  note(fmt::format("how far the prediction was off is not kept: {}: {}", path, reason_of(errno)));
}

std::optional<PredictionOutcome> outcome_of(const Prediction& prediction,
                                            const RecordedPrediction& recorded, bool simulated) {
  if (!recorded.took_s || !(*recorded.took_s > 0)) return std::nullopt;
  PredictionOutcome outcome{.made = moment_now(),
                            .task = prediction.task,
                            .job = prediction.job,
                            .cluster_name = prediction.cluster_name,
                            .strategy = prediction.strategy,
                            .obtained = simulated ? Obtained::kSimulated : Obtained::kMeasured,
                            .predicted_s = recorded.predicted_s,
                            .error = recorded.error,
                            .took_s = *recorded.took_s,
                            .program = library_versions().tutti};
  return is_plausible(outcome) ? std::optional(outcome) : std::nullopt;
}

}  // namespace tutti
