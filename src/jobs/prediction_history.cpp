#include "jobs/prediction_history.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "core/described_json.h"
#include "core/shallow_json.h"
#include "fabric/process/control_socket.h"
#include "jobs/versions.h"

namespace tutti {
namespace {

constexpr off_t kMostHistory = 1 << 20;  // bytes; then the older half goes

// Opens it with a lock that all who add to it take. What is no regular file is not waited for.
process::FileDescriptor open_locked(const std::string& path, int flags, int lock) {
  process::FileDescriptor file(open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK, 0644));
  struct stat status {};
  if (file.get() < 0 || fstat(file.get(), &status) != 0) return process::FileDescriptor(-1);
  if (!S_ISREG(status.st_mode)) {
    errno = EINVAL;
    return process::FileDescriptor(-1);
  }
  while (flock(file.get(), lock) != 0)
    if (errno != EINTR) return process::FileDescriptor(-1);
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

std::optional<PredictionOutcome> outcome_in(const std::string& line) {
  const nlohmann::json value = parse_shallow_json(line);
  if (!value.is_object()) return std::nullopt;
  try {
    return described_by<PredictionOutcome>(value);
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
                                                       const HistoryNote& note) {
  std::vector<PredictionOutcome> outcomes;
  const process::FileDescriptor file = open_locked(path, O_RDONLY, LOCK_SH);
  if (file.get() < 0) {
    if (errno != ENOENT)
      note(fmt::format("{} is ignored, because it cannot be read: {}", path, std::strerror(errno)));
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
                               const HistoryNote& note) {
  std::error_code failed;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), failed);
  const process::FileDescriptor file = open_locked(path, O_RDWR | O_CREAT, LOCK_EX);
  if (file.get() >= 0 && add_line(file.get(), json_of(outcome).dump() + "\n")) return;
  note(fmt::format("how far the prediction was off is not kept: {}: {}", path,
                   std::strerror(errno)));
}

std::optional<PredictionOutcome> outcome_of(const Prediction& prediction,
                                            const RecordedPrediction& recorded, bool simulated) {
  if (!recorded.took_s || !(*recorded.took_s > 0)) return std::nullopt;
  return PredictionOutcome{.made = moment_now(),
                           .task = prediction.task,
                           .job = prediction.job,
                           .cluster_name = prediction.cluster_name,
                           .strategy = prediction.strategy,
                           .obtained = simulated ? Obtained::kSimulated : Obtained::kMeasured,
                           .predicted_s = recorded.predicted_s,
                           .error = recorded.error,
                           .took_s = *recorded.took_s,
                           .program = library_versions().tutti};
}

}  // namespace tutti
