// Where files of data are.
#pragma once

#include <string>

namespace tutti {

// A path of a job as an absolute one: `~/` is the home directory of the user, anything else that is
// relative starts at `base_dir`. Empty stays empty.
std::string complete_path(const std::string& path, const std::string& base_dir);

// Where the scripts/fetch-* put data that no Debian package installs in readable form.
std::string cache_directory();

}  // namespace tutti
