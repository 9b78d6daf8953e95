// A file that is there when it is whole, and not before: whoever is killed while writing it leaves
// nothing behind.
//
// It has no name while it is written (O_TMPFILE), then gets its final one. Only to replace a file
// that is there already it is called "<name>.<process>.tmp" for a moment, because the system has no
// way to do both at once; and where a file system knows no files without names, from the beginning.
// What is left over of those is removed by the next who replaces the file.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "core/error.h"

namespace tutti {

// Reports a disk that is full or broken. That is not a mistake in a job or on a command line, so
// the program ends with another exit code than for a path that cannot be used.
class DiskError : public DataError {
 public:
  using DataError::DataError;
};

// Throws DataError when the path is at fault, else DiskError. The reason is an errno.
[[noreturn]] void throw_unwritable(const std::string& path, int reason);

// The functions and classes below throw as throw_unwritable() does.
class WholeFile {
 public:
  explicit WholeFile(std::string path);
  ~WholeFile();  // without publish() it is gone
  WholeFile(const WholeFile&) = delete;
  WholeFile& operator=(const WholeFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void sync();     // what was written survives a loss of power
  void publish();  // under its name, in place of what was there before

 private:
  [[noreturn]] void fail(int error) const;
  bool link_as(const std::string& name) const;

  std::string path_, temporary_;
  bool named_ = false;  // as temporary_
  int file_ = -1;
};

// Removes what processes that are no more have left of files in this folder.
void remove_leftovers(const std::string& folder);

}  // namespace tutti
