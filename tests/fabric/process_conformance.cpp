// The process fabric takes the conformance suite, twice: fetching large messages from the sender's
// memory, and as it runs where the system forbids that.
#include <sys/mman.h>

#include <atomic>
#include <csignal>

#include "fabric/process/process_fabric.h"
#include "tests/fabric/conformance.h"

namespace tutti {
namespace {

// Shared with the nodes, who say here whether their death is to be the last.
std::atomic<int>& restarts_wanted() {
  static auto* shared =
      static_cast<std::atomic<int>*>(mmap(nullptr, sizeof(std::atomic<int>), PROT_READ | PROT_WRITE,
                                          MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  return *shared;
}

}  // namespace

const FabricUnderTest& fabric_under_test() {
  restarts_wanted();  // before the first fork
  static const FabricUnderTest fabric{
      [](int nodes, const ConformanceOptions& options) {
        ProcessOptions process;
        process.timeout_s = options.timeout_s;
        process.restarts = 10;
        process.fetch = TUTTI_TEST_FETCH;
        process.may_restart = [](Rank) {
          const bool wanted = restarts_wanted() > 0;
          if (wanted) --restarts_wanted();
          return wanted;
        };
        auto roles = options.roles;
        if (roles.empty()) roles.assign(static_cast<size_t>(nodes), "worker");
        return make_process_fabric(roles, process);
      },
      true,
      17,
      8,
      [](Node&) { raise(SIGKILL); },
      [](Node&) {
        ++restarts_wanted();
        raise(SIGKILL);
      },
  };
  return fabric;
}

}  // namespace tutti
