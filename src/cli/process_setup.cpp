#include "cli/process_setup.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>

#include "fabric/outcome.h"

namespace tutti {
namespace {

std::atomic<bool>* stop_requested = nullptr;
const char* announcement = nullptr;
pid_t announcer = 0;  // nodes are forked from it, and a terminal signals them as well

void on_signal(int number) {
  if (stop_requested->exchange(true)) _exit(128 + number);
  if (!announcement || getpid() != announcer) return;
  const int before = errno;
  if (write(STDERR_FILENO, announcement, std::strlen(announcement)) < 0) {
    // Nobody reads it.
  }
  errno = before;
}

// UCX takes SIGHUP for itself as soon as it is loaded. What the program was started with can only
// be seen before that, which is when functions of this section run.
bool ignores_hang_up = false;
void note_hang_up(int, char**, char**) {
  struct sigaction given {};
  ignores_hang_up = sigaction(SIGHUP, nullptr, &given) == 0 && given.sa_handler == SIG_IGN;
}
[[gnu::section(".preinit_array"), gnu::used]] void (*const kNoteHangUp)(int, char**,
                                                                        char**) = note_hang_up;

void handle_signals(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  // A terminal that is closed asks to stop, too, unless nohup said that it shall not matter.
  if (!ignores_hang_up) sigaction(SIGHUP, &action, nullptr);
}

}  // namespace

void open_missing_descriptors() {
  // In this order: the system hands out the lowest number that is free.
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(fd, F_GETFD) < 0 && errno == EBADF && open("/dev/null", O_RDWR) != fd) _exit(1);
}

void explain_end_by_memory() {
  std::set_terminate([] {
    try {
      if (std::current_exception()) throw;
    } catch (const std::bad_alloc&) {
      std::fputs("tutti: out of memory\n", stderr);
      _exit(kExitInternal);
    } catch (...) {
    }
    std::abort();
  });
}

void ignore_broken_pipes() { signal(SIGPIPE, SIG_IGN); }

void stop_on_signals(std::atomic<bool>& stop, bool announce) {
  stop_requested = &stop;
  announcer = getpid();
  if (announce)
    announcement = isatty(STDERR_FILENO)
                       ? "\r\033[Ktutti: stopping; a second Ctrl-C ends it at once\n"
                       : "tutti: stopping; a second signal ends it at once\n";
  handle_signals(on_signal);
}

void end_on_signals() {
  handle_signals([](int) { _exit(kExitInterrupted); });
}

}  // namespace tutti
