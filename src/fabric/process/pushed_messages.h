// Messages of middle size between hosts, which are copied and sent without being asked for: a
// request would have to wait behind what their sender is sending at the time.
#pragma once

#include <cstddef>
#include <vector>

#include "fabric/process/channel.h"
#include "fabric/process/operation.h"

namespace tutti::process {

class PushedMessages {
 public:
  // A send that should be pushed when what was pushed before has gone: let it wait until then.
  bool must_wait(size_t bytes, const Channel& channel) const;
  // False: it is too large, or the receiver has too many that no receive has met.
  bool push(Operation& operation, Channel& channel);
  // Ends it as done: too late to call it back, but its buffer is free. False: it is none of these.
  bool withdraw(Operation& operation);
  void forget(const Channel& channel);

 private:
  struct Parcel;

  static bool may_push(size_t bytes, const Channel& channel);
  static void on_pushed(void* request, ucs_status_t status, void* parcel);

  std::vector<Parcel*> parcels_;  // UCX's callback deletes them
};

}  // namespace tutti::process
