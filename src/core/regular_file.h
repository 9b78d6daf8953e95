// Files that are read must be files: to open a pipe is to wait for whoever writes to it, perhaps
// for ever, and a device may never end.
#pragma once

#include <string>

namespace tutti {

// Throws DataError, which names the path and says what is there, unless that is a regular file or
// nothing at all: whoever opens the file says that it is missing. Links are followed.
void require_regular_file(const std::string& path);

}  // namespace tutti
