#include "fabric/process/lifeline.h"

#include <sys/prctl.h>
#include <sys/shm.h>
#include <unistd.h>

#include <csignal>

namespace tutti::process {
namespace {

// Set in a node only; a prctl follows the process, so this is as global as what it describes.
pid_t launcher_pid = 0;

}  // namespace

void die_with(pid_t launcher) {
  launcher_pid = launcher;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != launcher) _exit(1);
    // Where the Yama module restricts reading other processes' memory, allow the launcher's
    // descendants, our peers, to fetch large messages.
#ifdef PR_SET_PTRACER
  prctl(PR_SET_PTRACER, static_cast<unsigned long>(launcher), 0, 0, 0);
#endif
}

OutliveLauncher::OutliveLauncher() {
  if (launcher_pid != 0) prctl(PR_SET_PDEATHSIG, 0);
}

OutliveLauncher::~OutliveLauncher() {
  if (launcher_pid != 0) die_with(launcher_pid);
}

void sweep_segments_of(pid_t pid) {
  shm_info info{};
  const int last = shmctl(0, SHM_INFO, reinterpret_cast<shmid_ds*>(&info));
  for (int index = 0; index <= last; ++index) {
    shmid_ds segment{};
    const int id = shmctl(index, SHM_STAT, &segment);
    if (id >= 0 && segment.shm_cpid == pid && segment.shm_nattch == 0 &&
        segment.shm_perm.__key == IPC_PRIVATE)
      shmctl(id, IPC_RMID, nullptr);
  }
}

}  // namespace tutti::process
