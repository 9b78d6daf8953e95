// A job that somebody else wrote: what it would touch on this machine besides the folder of its
// runs, and whether that may be.
#pragma once

#include <string>

#include "jobs/job.h"
#include "jobs/task_identity.h"

namespace tutti {

// Throws ConfigError when the job resumes a run, whose folder it names, or waits for other
// machines.
void require_harmless(const Job& job, const std::string& where);

// Throws DataError, which shows the files, unless what the job reads has the fingerprints of
// `expected`. What is in other files is in no message.
void require_expected_data(const Job& job, const TaskIdentity& expected, const std::string& where);

}  // namespace tutti
