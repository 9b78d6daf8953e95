// A channel: the two-way link between this node and one incarnation of one peer, over UCX.
//
// Each channel has a UCX worker of its own. UCX's shared memory is not safe against SIGKILL:
// senders to a worker share its receive queue, and one that dies between reserving an entry and
// filling it blocks the queue for all others, for good. With a worker per peer a death harms only
// the queue that dies with it, survivors and their transfers go on untouched, and a message of an
// earlier incarnation has no way to arrive. A worker costs 1 ms, 1 MB and three file descriptors.
//
// UCX carries messages up to kEagerBytes and notices of larger ones; those travel by rendezvous.h
// within a host and by courier.h between hosts.
#pragma once

#include <ucp/api/ucp.h>

#include <cstdint>
#include <string>

#include "fabric/tag.h"

namespace tutti::process {

class UcxContext {
 public:
  // Shared memory, for nodes of one host; or TCP over a network interface, and no other.
  explicit UcxContext(const std::string& interface = "");
  ~UcxContext();
  UcxContext(const UcxContext&) = delete;
  UcxContext& operator=(const UcxContext&) = delete;
  ucp_context_h get() const { return context_; }

 private:
  ucp_context_h context_ = nullptr;
};

// The 64 bits that UCX matches: 40 bits of Tag, and above them, for the notice of a large message,
// a flag and where its offer is on the board.
inline constexpr uint64_t kTagMask = (uint64_t{1} << 40) - 1;
inline constexpr uint64_t kNoticeFlag = uint64_t{1} << 63;
inline constexpr uint64_t kPushFlag = uint64_t{1} << 62;  // and no notice: see courier.h

class Channel {
 public:
  Channel(const UcxContext& context, Rank peer, uint32_t incarnation);
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  Rank peer() const { return peer_; }
  uint32_t incarnation() const { return incarnation_; }
  ucp_worker_h worker() const { return worker_; }
  ucp_ep_h endpoint() const { return endpoint_; }
  std::string address() const;
  // Stays unconnected when the owner of the address has died meanwhile. The launcher will then
  // report that the peer is lost; if it does not, failure() has the error of UCX.
  void connect(const std::string& address);
  bool connected() const { return endpoint_ != nullptr; }
  const std::string& failure() const { return failure_; }
  // Between hosts: the other side has connected to us too, and said so.
  bool greeted() const { return greeted_; }
  void set_greeted() { greeted_ = true; }
  // Bytes that were pushed and not yet met by a receive, as far as we know.
  size_t pushed() const { return pushed_; }
  void add_pushed(int64_t bytes) { pushed_ += static_cast<size_t>(bytes); }
  // Closed after its peer was lost: nothing is sent, and what has arrived can still be received.
  bool closed() const { return closed_; }

  unsigned progress() { return closed_ ? 0 : ucp_worker_progress(worker_); }
  int event_fd() const { return event_fd_; }
  // Makes event_fd readable at the next event; false: there is one already, progress instead.
  bool arm() { return closed_ || ucp_worker_arm(worker_) == UCS_OK; }

  // A receive of the owner's that stays posted; closing withdraws it.
  void set_standing_receive(void* request) { standing_receive_ = request; }

  // Takes in what has arrived, then force-closes the endpoint, which ends its unfinished sends.
  void close();
  // Some request was left inside: the worker must never be touched again, so it is leaked.
  void abandon() { abandoned_ = true; }

 private:
  Rank peer_;
  uint32_t incarnation_;
  ucp_worker_h worker_ = nullptr;
  ucp_ep_h endpoint_ = nullptr;
  void* standing_receive_ = nullptr;
  int event_fd_ = -1;
  std::string failure_;
  bool greeted_ = false;
  size_t pushed_ = 0;
  bool closed_ = false;
  bool abandoned_ = false;
};

// Throws FabricError naming the call and UCX's own words.
void check_ucx(ucs_status_t status, const char* call, Rank peer = kAnyRank);

}  // namespace tutti::process
