// Taking part in a run that was launched elsewhere: the work behind `tutti join`.
#pragma once

#include <atomic>
#include <string>

namespace tutti {

struct JoinSettings {
  std::string address;   // host:port of the launcher
  std::string token;     // of the run
  std::string data_dir;  // where data files lie here; empty: where the launcher has them
  bool quiet = false;
};

// Throws when it is not let in; otherwise it exits with the code that this node's part ended with.
[[noreturn]] void join_run(const JoinSettings& settings, const std::atomic<bool>& stop);

}  // namespace tutti
