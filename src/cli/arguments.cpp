#include "cli/arguments.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdlib>

#include "core/error.h"
#include "core/printable.h"
#include "data/paths.h"
#include "jobs/recipes.h"
#include "testbed/this_machine.h"

namespace tutti {
namespace {

constexpr size_t kColumns = 100;  // where nothing says how wide the reader's page is

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

}  // namespace

const std::string& job_file(const std::string& name) {
  if (name.empty())
    throw ConfigError("JOB", "JOB is empty: name a job file, such as recipes/demo.toml");
  return name;
}

Job job_of(const JobOptions& options, Notes notes) {
  const std::string& name = options.cluster;
  Job job = load_job(job_file(options.job), options.sets,
                     name.empty() ? "" : find_recipe("clusters", cluster_of(name)));
  require_task(job, options.job);
  if (notes == Notes::kTold)
    for (const std::string& text : job.dropped) tell(fmt::format("tutti: {}\n", printable(text)));
  return job;
}

// As the XDG specification has it, which counts absolute paths alone.
std::string cache_folder() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  return cache && *cache == '/' ? std::string(cache) + "/tutti" : cache_directory();
}

std::string cluster_of(const std::string& name) {
  static const std::atomic<bool> never{false};  // it takes seconds
  const auto say = [](const std::string& text) { tell(fmt::format("tutti: {}\n", text)); };
  return is_this_machine(name) ? file_of_this_machine(cache_folder(), say, never) : name;
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
