// Files in one tar archive (POSIX ustar), which every system can open, with the same bytes for the
// same contents: names in order, no dates, no owners.
//
// What is read may come from anybody. Only plain files with harmless names are taken: nothing that
// absolute paths, "..", links or devices could put elsewhere when a person unpacks the archive.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace tutti {

using Members = std::map<std::string, std::string>;  // contents by name

// Throws DataError when a name does not fit into the format.
std::string tar_of(const Members& members);

// Throws DataError that begins with `where` and names the member at fault. Takes no more memory
// than the archive is long.
Members members_of_tar(std::string_view tar, const std::string& where);

}  // namespace tutti
