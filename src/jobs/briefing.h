// What a launcher tells a node that joins from elsewhere: the resolved job, its plan, and what the
// data there must look like, so that two machines with different files do not train on both of
// them.
#pragma once

#include <string>

#include "jobs/resolve.h"

namespace tutti {

std::string make_briefing(const Resolved& resolved);

struct Briefing {
  Job job;
  std::string data_fingerprint;
  std::string plan;  // as JSON
};
// Throws DataError when it is none, ConfigError when it is of another version of the program. Data
// files are looked for in `data_dir`, or where the launcher has them if that is empty.
Briefing read_briefing(const std::string& text, const std::string& data_dir);

}  // namespace tutti
