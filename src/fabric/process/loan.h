// A loan: memory of the caller's that UCX reads or writes, piece by piece, through callbacks of
// ours.
//
// UCX itself cannot call back a send that waits in its queues, nor a receive whose message is half
// there, and neither ends while the peer computes. A loan can be recalled at any moment: from then
// on a copy is sent, and what still comes goes into memory of our own. So cancelling never waits,
// and no link to a peer is given up because of it.
#pragma once

#include <ucp/api/ucp.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tutti::process {

class Loan {
 public:
  Loan() = default;
  Loan(const Loan&) = delete;  // UCX knows its address
  Loan& operator=(const Loan&) = delete;

  // These return what UCX does: a request, nullptr or an error.
  void* send(ucp_ep_h endpoint, const std::byte* data, size_t bytes, uint64_t tag,
             ucp_request_param_t param);
  void* receive(ucp_worker_h worker, std::byte* data, size_t bytes, uint64_t tag, uint64_t mask,
                ucp_request_param_t param);
  void* take(ucp_worker_h worker, std::byte* data, size_t bytes, ucp_tag_message_h message,
             ucp_request_param_t param);

  // The memory goes back to its owner.
  void recall_send();
  void recall_receive();
  bool recalled() const { return recalled_; }
  const std::byte* data() const { return data_; }  // of what came since, and before
  void end();                                      // UCX is through with it

 private:
  void lend(std::byte* data, size_t bytes);
  void copy(const std::byte* data, size_t bytes);

  static void add_type(ucp_request_param_t& param);
  static void* start_pack(void* context, const void* loan, size_t count);
  static void* start_unpack(void* context, void* loan, size_t count);
  static size_t size(void* loan);
  static size_t pack(void* loan, size_t offset, void* to, size_t most);
  static ucs_status_t unpack(void* loan, size_t offset, const void* from, size_t bytes);
  static void finish(void* loan);

  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
  size_t filled_ = 0;  // how much of a receive has come
  bool recalled_ = false;
  std::vector<std::byte> own_;
};

}  // namespace tutti::process
