// The folder of a comparison: what it compares, the jobs and the runs. The same command on the same
// folder goes on where it ended, whatever ended it.
//
//   comparison.json  what is compared; another comparison is refused
//   jobs/NAME.toml   what each run was started with
//   runs/NAME/       a run folder each
//   tuning/          the same of the trials of --tune
//   compare.json, compare.csv   the result, once it is complete
#pragma once

#include <optional>
#include <string>

#include "core/folder_lock.h"
#include "testbed/run_files.h"

namespace tutti {

struct ComparisonSettings {
  std::string job;  // resolved, with its [[compare]] entries
  bool share_curves = true;
  std::string data;    // fingerprint of the training data
  std::string tuning;  // what --tune asks for; empty: nothing
};

class ComparisonFolder {
 public:
  // Creates `path` ("compare/<name>-<time>" when it is empty) or opens it to go on. Throws
  // ConfigError when it holds something else, or a comparison that differs, saying in what; and
  // when somebody else is at work in it.
  ComparisonFolder(const std::string& path, const std::string& name,
                   const ComparisonSettings& settings);

  const std::string& path() const { return path_; }
  std::string run(const std::string& name) const { return path_ + "/runs/" + name; }
  std::string job(const std::string& name) const { return path_ + "/jobs/" + name + ".toml"; }

  // The run `name` if it has ended, was started with `wanted` and can be read. What is half done is
  // removed; what is damaged or different is left and named in `complaint`.
  std::optional<RunFiles> finished(const std::string& name, const std::string& wanted,
                                   std::string& complaint) const;
  void remove(const std::string& name) const;

 private:
  void open(const ComparisonSettings& settings);

  std::string path_;
  FolderLock lock_;
};

}  // namespace tutti
