// The folder of a run: resolved job, run.json, series, logs, parameters. Whoever writes into it
// says so when the disk is full, and never leaves half a file under a final name.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

#include "core/folder_lock.h"
#include "core/log.h"
#include "strategies/recorder.h"

namespace tutti {

// Throws DataError naming the path and the reason.
std::string read_file(const std::string& path);
// The path that stands for standard output.
inline constexpr std::string_view kStandardOutput = "-";
// All of it at once (core/whole_file.h); what a link stands for, not the link. What is no regular
// file is written as it is, and "-" and standard output by any other name go to standard output.
void write_file(const std::string& path, std::string_view content);

// A run folder that is locked against other writers.
struct RunFolder {
  std::string path;
  FolderLock lock;
};
// Creates `path` for a new run, or "runs/<name>-<time>" when it is empty. Throws ConfigError when
// the folder cannot be written, already holds a run, or is in use by another process.
RunFolder create_run_folder(const std::string& path, const std::string& name);

// Adds to the end of a file and closes it again: a thousand nodes in one process have more logs
// than it may have open files. Throws DataError.
void append_to_file(const std::string& path, std::string_view text);

// Returns the last line of a file of lines, without its end; "" when there is none. Half a line
// after it, in which somebody was killed, is removed. Throws DataError.
std::string last_whole_line(const std::string& path);

// A file that rows are appended to while the run goes on; what was written is kept if it dies.
class AppendFile {
 public:
  // `continues`: after what is there already, if anything is.
  AppendFile(std::string path, std::string_view header, bool continues = false);
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;
  void append(std::string_view text);
  void flush();

 private:
  std::string path_;
  std::FILE* file_;
};

}  // namespace tutti
