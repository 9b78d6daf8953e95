// A fence whose cost is borne by the side that has time.
//
// "I publish, then look whether somebody sleeps" against "I fall asleep, then look what was
// published" needs a full fence between the two halves of both. In a reduction of a few KiB that
// fence is a third of the time, and nobody ever sleeps there. membarrier(2) lets the sleeper fence
// for both: it returns when every core has passed one.
#pragma once

#include <atomic>

namespace tutti::process {

class AsymmetricFence {
 public:
  AsymmetricFence();  // puts this process among those that heavy() reaches

  // Between publishing and looking. A process that heavy() does not reach fences itself.
  void light() const {
    if (reached_)
      std::atomic_signal_fence(std::memory_order_seq_cst);
    else
      std::atomic_thread_fence(std::memory_order_seq_cst);
  }
  // Between falling asleep and looking; takes some microseconds. False: the kernel did not do it
  // for processes that count on it, so do not sleep.
  bool heavy() const;

 private:
  bool reached_;
};

}  // namespace tutti::process
