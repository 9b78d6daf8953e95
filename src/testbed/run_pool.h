// Runs as child processes of this one: a crash stays theirs, and they die when this process does.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tutti {

// How far a run has come, as it last said.
struct RunProgress {
  std::string name;
  int64_t step = 0, total = 0;
  std::optional<double> loss, quality;
};

struct EndedRun {
  size_t id = 0;
  int exit_code = -1;  // -1: ended by a signal
  std::string error;   // what it said last, or which signal ended it
};

class RunPool {
 public:
  // `program` is this program, "/proc/self/exe".
  explicit RunPool(std::string program) : program_(std::move(program)) {}
  ~RunPool();  // ends whoever still runs
  RunPool(const RunPool&) = delete;
  RunPool& operator=(const RunPool&) = delete;

  // Throws FabricError when no process can be started.
  void start(size_t id, const std::string& name, const std::vector<std::string>& arguments);
  // Listens to all runs for a moment; those that ended are running no more.
  std::vector<EndedRun> listen(int timeout_ms);
  void signal_all(int number) const;

  size_t running() const { return children_.size(); }
  std::vector<RunProgress> progress() const;

 private:
  struct Child {
    pid_t pid = 0;
    int output = -1;  // its standard error
    std::string partial_line;
    std::string last_error;
    RunProgress progress;
  };
  void drain(Child& child);
  static void take_line(Child& child, const std::string& line);

  std::string program_;
  std::map<size_t, Child> children_;  // by id
};

}  // namespace tutti
