#include "jobs/record_book.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "core/error.h"
#include "core/whole_file.h"

namespace tutti {
namespace {

constexpr const char* kBookName = "the measurements of the run";

}  // namespace

RecordBook::RecordBook() : file_(memfd_create("tutti-record", MFD_CLOEXEC)) {
  if (file_.get() < 0 || fcntl(file_.get(), F_SETFL, O_APPEND) != 0)
    throw Error(std::string("there is no memory for the record: ") + std::strerror(errno));
}

void RecordBook::add(Rank author, const EvaluationRow& row) {
  const Entry entry{author, 0, row};
  const ssize_t written = write(file_.get(), &entry, sizeof entry);
  if (written != static_cast<ssize_t>(sizeof entry))
    throw_unwritable(kBookName, written < 0 ? errno : ENOSPC);
}

// A lock belongs to an opening of a file: each node needs one of its own.
std::optional<Keeping> RecordBook::try_keep() const {
  const std::string path = fmt::format("/proc/self/fd/{}", file_.get());
  process::FileDescriptor lock(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (lock.get() < 0)
    throw Error(fmt::format("{} cannot be opened: {}", kBookName, std::strerror(errno)));
  if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) return std::nullopt;
  return Keeping(std::move(lock));
}

std::vector<EvaluationRow> RecordBook::Reader::news() {
  std::vector<EvaluationRow> rows;
  Entry entry;
  while (pread(book_.file_.get(), &entry, sizeof entry,
               static_cast<off_t>(entries_ * sizeof entry)) == sizeof entry) {
    ++entries_;
    if (is_known(entry)) continue;
    last_ = entry;
    rows.push_back(entry.row);
  }
  return rows;
}

// Whoever goes on for another one says again what the other may not have come to.
bool RecordBook::Reader::is_known(const Entry& entry) const {
  if (!last_) return false;
  if (entry.author != last_->author) return entry.row.samples <= last_->row.samples;
  return entry.row.samples < last_->row.samples ||
         std::memcmp(&entry.row, &last_->row, sizeof entry.row) == 0;
}

}  // namespace tutti
