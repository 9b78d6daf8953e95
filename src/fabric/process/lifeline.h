// What ties a node's life to its launcher's: it dies when the launcher does, however that dies.
#pragma once

#include <sys/types.h>

namespace tutti::process {

// Called once in a fresh node. Exits if the launcher is gone already.
void die_with(pid_t launcher);

// While one of these lives, the node survives its launcher's death; it exits at the end instead.
class OutliveLauncher {
 public:
  OutliveLauncher();
  ~OutliveLauncher();
  OutliveLauncher(const OutliveLauncher&) = delete;
  OutliveLauncher& operator=(const OutliveLauncher&) = delete;
};

// Removes the shared memory segments that process `pid`, now dead, made and could not yet mark for
// removal. Others cannot have attached to them: they learn of a segment later.
void sweep_segments_of(pid_t pid);

}  // namespace tutti::process
