// What the program settles with the system before it does anything: descriptors, memory, signals.
#pragma once

#include <atomic>

namespace tutti {

// A program started without standard input, output or error would get these numbers for files of
// its own, and write its messages into them: puts /dev/null there.
void open_missing_descriptors();

// What `new` throws must also end in a message where nobody may throw: while a library loads.
void explain_end_by_memory();

// `tutti ... | head` ends by a write error, not by a signal.
void ignore_broken_pipes();

// For commands that look at `stop`: the first signal asks for a clean stop that keeps the record,
// and is acknowledged on standard error if `announce`; a second one ends at once.
void stop_on_signals(std::atomic<bool>& stop, bool announce);

// For all others there is nothing to keep: the first one ends them.
void end_on_signals();

}  // namespace tutti
