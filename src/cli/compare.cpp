// `tutti compare`: one task under many architectures.
#include "testbed/compare.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "core/error.h"
#include "jobs/run_record.h"
#include "testbed/table.h"

namespace tutti {
namespace {

constexpr size_t kColumns = 100;  // where nothing says how wide the reader's page is

size_t columns_of(int fd) {
  winsize size{};
  return isatty(fd) && ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col >= 20
             ? std::min<size_t>(size.ws_col, kColumns)
             : kColumns;
}

// "1,2,7" are seeds; a single number says how many, from 1 up.
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

// One line for what did not end well; nothing of it is an error of the comparison.
std::string failures(const nlohmann::json& result) {
  std::string text;
  for (const auto& row : result["strategies"])
    if (row["status"] != "done")
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", row["name"].get<std::string>(),
                          row["status"].get<std::string>());
  return text.empty() ? "" : fmt::format("not all ended well: {}\n", text);
}

}  // namespace

int run_compare(const CompareCommandOptions& options, const std::atomic<bool>& stop) {
  Job job = load_job(options.job, options.sets);
  CompareOptions compare_options;
  if (!options.strategies.empty()) compare_options.strategies = options.strategies;
  compare_options.seeds = seeds_of(options.seeds);
  compare_options.out = options.out;
  compare_options.jobs = static_cast<size_t>(options.jobs);
  compare_options.share_curves = !options.no_sharing;
  compare_options.strict = options.strict;
  if (!options.quiet) {
    compare_options.progress = isatty(STDERR_FILENO) ? ProgressStyle::kLive : ProgressStyle::kLines;
    compare_options.columns = columns_of(STDERR_FILENO) - 1;
  }
  std::string folder;
  const nlohmann::json result = compare(job, compare_options, stop, folder);
  if (options.json) {
    std::cout << json_text(result) << "\n";
  } else {
    std::cout << comparison_table(result, {.columns = columns_of(STDOUT_FILENO),
                                           .bold = isatty(STDOUT_FILENO) != 0,
                                           .group = options.group})
              << failures(result) << fmt::format("comparison {}\n", folder);
  }
  return 0;
}

}  // namespace tutti
