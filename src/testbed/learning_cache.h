// Lessons that were learned before, kept in a folder of the user: computing gradients is what
// advice waits for, and they are the same for another cluster.
//
// A lesson has a file of its own, called after everything that it depends on: the samples, the task
// with its seed, the optimizer with its rates, the strategy's settings, its workers and how they
// differ, and the arithmetic of this program. Where workers do not wait for each other, the cluster
// decides whose update comes first: lessons of another cluster are found too, and marked.
#pragma once

#include <optional>
#include <string>

#include "jobs/task_identity.h"
#include "testbed/learning.h"

namespace tutti {

struct KeptLesson {
  Lesson lesson;  // time_s: 0 but where it was learned with the times of this very cluster
  bool from_another_cluster = false;  // where that may make a difference
};

class LearningCache {
 public:
  // `folder` empty: nothing is kept. `declared` has the cluster that the advice is for as it was
  // declared: what is measured of a model differs from one time to the next.
  LearningCache(std::string folder, const TaskIdentity& task, const Job& declared, Announce note);

  std::optional<KeptLesson> find(const Job& learner) const;
  // A folder that cannot be written is noted once, and costs nothing else.
  void keep(const Job& learner, const Lesson& lesson);

 private:
  // The folder for all that lessons of a job have in common, whichever the cluster.
  std::string folder_of(const Job& learner) const;
  std::string file_of(const Job& learner) const;
  std::optional<Lesson> read(const std::string& path, const std::string& timed_on) const;

  std::string folder_, task_, cluster_;
  Announce note_;
  bool noted_ = false;
};

}  // namespace tutti
