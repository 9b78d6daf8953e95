#include "cli/arguments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "core/error.h"
#include "core/printable.h"
#include "data/paths.h"
#include "jobs/recipes.h"
#include "jobs/run_folder.h"
#include "testbed/this_machine.h"

namespace tutti {
namespace {

constexpr size_t kMostDropped = 5;  // settings that are told one by one
constexpr size_t kColumns = 100;    // where nothing says how wide the reader's page is

// The defaults are for tests and benchmarks. A user whose file sets neither key has named the wrong
// file, or has lost the contents of the right one.
void require_task(const Job& job, const std::string& file) {
  for (const char* key : {"task.data", "task.model"})
    if (!job.places.contains(key))
      throw ConfigError(
          key, fmt::format("{}: {} is missing; a job says at least what to learn from and what to "
                           "train: [task] with, for example, data = \"fashion-mnist\" and model = "
                           "\"lenet\"",
                           file, key));
}

// The key of a message "job.toml:3: cluster.speed = 1e9 is not ... and was dropped".
std::string key_of(const std::string& dropped) {
  const size_t end = dropped.find(" = ");
  const size_t begin = dropped.rfind(' ', end == 0 ? 0 : end - 1);
  return begin == std::string::npos ? dropped : dropped.substr(begin + 1, end - begin - 1);
}

// Each with its place and its reason; in one line where they are many, as where a virtual cluster
// with all its speeds becomes real processes.
void tell_dropped(const Job& job, bool quiet) {
  if (job.dropped.size() <= kMostDropped) {
    for (const std::string& text : job.dropped) tell(fmt::format("tutti: {}\n", printable(text)));
    return;
  }
  if (quiet) return;
  std::vector<std::string> keys;
  for (const std::string& text : job.dropped) keys.push_back(key_of(text));
  tell(printable(fmt::format("tutti: {} settings have no meaning here and were dropped: {}",
                             keys.size(), fmt::join(keys, ", "))) +
       "\n");
}

}  // namespace

const std::string& job_file(const std::string& name) {
  if (name.empty())
    throw ConfigError("JOB", "JOB is empty: name a job file, such as recipes/demo.toml");
  return name;
}

Job job_of(const JobOptions& options, const std::atomic<bool>& stop, Notes notes) {
  const std::string& name = options.cluster;
  Job job = load_job(job_file(options.job), options.sets,
                     name.empty() ? "" : find_recipe("clusters", cluster_of(name, stop)));
  require_task(job, options.job);
  if (notes == Notes::kTold) tell_dropped(job, options.quiet);
  return job;
}

// As the XDG specification has it, which counts absolute paths alone.
std::string cache_folder() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  return cache && *cache == '/' ? std::string(cache) + "/tutti" : cache_directory();
}

std::string cluster_of(const std::string& name, const std::atomic<bool>& stop) {
  const auto say = [](const std::string& text) { tell(fmt::format("tutti: {}\n", text)); };
  return is_this_machine(name) ? file_of_this_machine(cache_folder(), say, stop) : name;
}

void require_writable(const std::string& option, const std::string& file) {
  namespace fs = std::filesystem;
  if (file == kStandardOutput) return;
  const auto refuse = [&](const std::string& why) {
    throw ConfigError(
        option, fmt::format("{} {}: cannot be written: {}; name another file", option, file, why));
  };
  const fs::path path(file);
  std::error_code failed;
  if (fs::is_directory(path, failed)) refuse("it is a folder");
  // Standard output may be a pipe that somebody reads; of another one nobody knows.
  if (fs::is_fifo(path, failed) && !file.starts_with("/dev/")) refuse("it is a pipe");
  const std::string folder = path.has_parent_path() ? path.parent_path().string() : ".";
  if (access(fs::is_other(path, failed) ? file.c_str() : folder.c_str(), W_OK) != 0)
    refuse(std::strerror(errno));
}

size_t columns_of(int fd) {
  const size_t columns = terminal_columns(fd).value_or(kColumns);
  return columns >= 20 ? std::min(columns, kColumns) : kColumns;
}

std::vector<uint64_t> seeds_of(const std::vector<std::string>& words) {
  std::vector<uint64_t> numbers;
  for (const std::string& word : words) {
    uint64_t number = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (error != std::errc{} || end != word.data() + word.size() || number > INT64_MAX)
      throw ConfigError("--seeds", fmt::format("--seeds {}: write --seeds 5 for the seeds 1 to 5, "
                                               "or a list as --seeds 3,7",
                                               word));
    if (std::find(numbers.begin(), numbers.end(), number) != numbers.end())
      throw ConfigError("--seeds", fmt::format("--seeds: {} is given twice", number));
    numbers.push_back(number);
  }
  if (numbers.size() != 1) return numbers;
  const uint64_t count = numbers[0];
  if (count < 1 || count > 1000)
    throw ConfigError("--seeds", fmt::format("--seeds {}: must be 1 to 1000, or a list", count));
  numbers.clear();
  for (uint64_t seed = 1; seed <= count; ++seed) numbers.push_back(seed);
  return numbers;
}

ProgressStyle progress_style(bool quiet) {
  if (quiet) return ProgressStyle::kNone;
  return isatty(STDERR_FILENO) ? ProgressStyle::kLive : ProgressStyle::kLines;
}

}  // namespace tutti
