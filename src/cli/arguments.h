// What several commands read from their command line and their terminal in the same way.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "jobs/job.h"
#include "jobs/progress.h"

namespace tutti {

// The name of a job file as it was given. Throws ConfigError when it is empty, as `train "$JOB"`
// may make it: load_job() would take the default job.
const std::string& job_file(const std::string& name);

// Loads the job file with the cluster and the settings of the options. Warns about settings that
// these made meaningless, unless standard error is for a program to read.
enum class Notes { kTold, kKept };
Job job_of(const JobOptions& options, const std::atomic<bool>& stop, Notes notes = Notes::kTold);

// The cluster that an option names: `here` is this machine, which is measured for it, unless that
// was done lately or there is a file of that name; it becomes the name of a file. All others stay.
// Throws InterruptedError.
std::string cluster_of(const std::string& name, const std::atomic<bool>& stop);

// Throws ConfigError where an option names a file that cannot be written, before the work begins.
void require_writable(const std::string& option, const std::string& file);

// Where the user's programs keep what can be made again.
std::string cache_folder();

// How wide the reader's page is: that of the terminal behind `fd`, at most 100.
size_t columns_of(int fd);

// "1,2,7" are seeds; a single number says how many, from 1 up. Throws ConfigError.
std::vector<uint64_t> seeds_of(const std::vector<std::string>& words);

// Live on a terminal, lines otherwise, nothing when quiet.
ProgressStyle progress_style(bool quiet);

}  // namespace tutti
