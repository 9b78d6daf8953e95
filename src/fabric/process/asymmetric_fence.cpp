#include "fabric/process/asymmetric_fence.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace tutti::process {
namespace {

bool membarrier(int command) { return syscall(SYS_membarrier, command, 0, 0) == 0; }

}  // namespace

AsymmetricFence::AsymmetricFence()
    : reached_(membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED)) {}

bool AsymmetricFence::heavy() const {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  // Where this process could not register no other of the run could: all fence themselves.
  return !reached_ || membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
}

}  // namespace tutti::process
