#include "fabric/process/loan.h"

#include <algorithm>
#include <cstring>

#include "fabric/process/channel.h"

namespace tutti::process {
namespace {

// So little UCX had better see at once than ask for it by a callback: it may fit into the entry of
// a queue.
constexpr size_t kCopiedBytes = 1024;
// Less than a segment of UCX's (channel.cpp): what fits into so small a buffer comes in one piece,
// and of what does not nothing is written.
constexpr size_t kWholeBytes = size_t{16} << 10;
constexpr size_t kKeptBytes = 4 * kCopiedBytes;

}  // namespace

void* Loan::send(ucp_ep_h endpoint, const std::byte* data, size_t bytes, uint64_t tag,
                 ucp_request_param_t param) {
  if (bytes <= kCopiedBytes) {
    copy(data, bytes);
    return ucp_tag_send_nbx(endpoint, data_, bytes, tag, &param);
  }
  lend(const_cast<std::byte*>(data), bytes);  // only read from, by pack()
  add_type(param);
  return ucp_tag_send_nbx(endpoint, this, 1, tag, &param);
}

void* Loan::receive(ucp_worker_h worker, std::byte* data, size_t bytes, uint64_t tag, uint64_t mask,
                    ucp_request_param_t param) {
  lend(data, bytes);
  if (bytes <= kWholeBytes) return ucp_tag_recv_nbx(worker, data, bytes, tag, mask, &param);
  add_type(param);
  return ucp_tag_recv_nbx(worker, this, 1, tag, mask, &param);
}

void* Loan::take(ucp_worker_h worker, std::byte* data, size_t bytes, ucp_tag_message_h message,
                 ucp_request_param_t param) {
  lend(data, bytes);
  if (bytes <= kWholeBytes) return ucp_tag_msg_recv_nbx(worker, data, bytes, message, &param);
  add_type(param);
  return ucp_tag_msg_recv_nbx(worker, this, 1, message, &param);
}

void Loan::end() {
  if (own_.capacity() > kKeptBytes) own_ = {};
}

void Loan::lend(std::byte* data, size_t bytes) {
  data_ = data;
  bytes_ = bytes;
  filled_ = 0;
  recalled_ = false;
}

void Loan::copy(const std::byte* data, size_t bytes) {
  own_.assign(data, data + bytes);
  lend(own_.data(), bytes);
  recalled_ = true;
}

void Loan::recall_send() {
  if (!recalled_) copy(data_, bytes_);
}

void Loan::recall_receive() {
  if (recalled_) return;
  own_.assign(data_, data_ + filled_);
  data_ = own_.data();
  recalled_ = true;
}

void Loan::add_type(ucp_request_param_t& param) {
  static const ucp_datatype_t type = [] {
    const ucp_generic_dt_ops_t operations{start_pack, start_unpack, size, pack, unpack, finish};
    ucp_datatype_t created{};
    check_ucx(ucp_dt_create_generic(&operations, nullptr, &created), "ucp_dt_create_generic");
    return created;
  }();
  param.op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE;
  param.datatype = type;
}

void* Loan::start_pack(void*, const void* loan, size_t) { return const_cast<void*>(loan); }

void* Loan::start_unpack(void*, void* loan, size_t) { return loan; }

size_t Loan::size(void* loan) { return static_cast<const Loan*>(loan)->bytes_; }

size_t Loan::pack(void* state, size_t offset, void* to, size_t most) {
  const auto& loan = *static_cast<const Loan*>(state);
  const size_t bytes = std::min(most, loan.bytes_ - offset);
  std::memcpy(to, loan.data_ + offset, bytes);
  return bytes;
}

// UCX has compared the end of it with the size of the loan.
ucs_status_t Loan::unpack(void* state, size_t offset, const void* from, size_t bytes) {
  auto& loan = *static_cast<Loan*>(state);
  loan.filled_ = std::max(loan.filled_, offset + bytes);
  if (loan.recalled_) {
    if (loan.own_.size() < loan.filled_) loan.own_.resize(loan.filled_);
    loan.data_ = loan.own_.data();
  }
  if (bytes > 0) std::memcpy(loan.data_ + offset, from, bytes);
  return UCS_OK;
}

void Loan::finish(void*) {}

}  // namespace tutti::process
