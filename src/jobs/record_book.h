// The measurements of a run, in memory that outlives each of its nodes: the launcher makes it
// before they start, who measures quality adds a row, and who keeps the record reads the rows of
// all.
//
// Rows are appended to a file without a name, each by one call of the system, so that no row is
// ever half there, whoever dies, and nobody waits for anybody. Nodes of one machine share it; those
// that join from elsewhere report what they measured when they end.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "fabric/process/control_socket.h"
#include "strategies/recorder.h"

namespace tutti {

// Holds the right to write the files of a run: one node at a time has it, until it dies.
class Keeping {
 public:
  explicit Keeping(process::FileDescriptor lock) : lock_(std::move(lock)) {}

 private:
  process::FileDescriptor lock_;
};

class RecordBook {
  struct Entry {
    Rank author = 0;
    int32_t unused = 0;
    EvaluationRow row;
  };

 public:
  RecordBook();

  // Throws DataError.
  void add(Rank author, const EvaluationRow& row);
  // Nothing while somebody else has it, who may be lost to some nodes and not yet gone.
  std::optional<Keeping> try_keep() const;

  // Reads what was added, from the beginning. What several have written down alike comes once:
  // replicas of a server know of the same measurements.
  class Reader {
   public:
    explicit Reader(const RecordBook& book) : book_(book) {}
    std::vector<EvaluationRow> news();  // since the last call

   private:
    bool is_known(const Entry& entry) const;

    const RecordBook& book_;
    size_t entries_ = 0;  // that were read
    std::optional<Entry> last_;
  };

 private:
  process::FileDescriptor file_;
};

}  // namespace tutti
