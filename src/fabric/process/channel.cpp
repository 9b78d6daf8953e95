#include "fabric/process/channel.h"

#include <ucs/debug/log_def.h>

#include <cstdarg>
#include <cstdlib>

#include "core/error.h"
#include "fabric/node.h"
#include "fabric/process/lifeline.h"

namespace tutti::process {
namespace {

void modify(ucp_config_t* config, const char* name, const char* value) {
  check_ucx(ucp_config_modify(config, name, value), name);
}

// UCX complains when it meets the remains of a dead peer. That peer's loss is our message to tell,
// and what concerns us reaches us as a status.
ucs_log_func_rc_t drop_complaints(const char*, unsigned, const char*, ucs_log_level_t level,
                                  const ucs_log_component_config_t*, const char*, va_list) {
  const bool complaint = level == UCS_LOG_LEVEL_ERROR || level == UCS_LOG_LEVEL_WARN;
  return complaint ? UCS_LOG_FUNC_RC_STOP : UCS_LOG_FUNC_RC_CONTINUE;
}

// UCX alone never decides that a peer is lost; the launcher does, and it will speak within 2 s.
void ignore_error(void*, ucp_ep_h, ucs_status_t) {}

}  // namespace

void check_ucx(ucs_status_t status, const char* call, Rank peer) {
  if (status != UCS_OK)
    throw FabricError(FabricError::Kind::kUnavailable, peer,
                      std::string("UCX: ") + call + ": " + ucs_status_string(status));
}

UcxContext::UcxContext(const std::string& interface) {
  const OutliveLauncher guard;  // UCX tries out shared memory as it starts; see Channel below
  ucs_log_push_handler(drop_complaints);
  // These belong to UCX's transports, which read them from the environment and nowhere else.
  // Without the first, asking for error handling silently turns shared memory off. The second lets
  // the largest eager message travel in two pieces, twice as fast as in eight; not in one, because
  // UCX counts the bytes of a piece in 16 bits. The others bound the memory that this takes.
  const std::string piece = std::to_string(kEagerBytes / 2 + 512);
  setenv("UCX_SYSV_ERROR_HANDLING", "y", 1);
  setenv("UCX_SYSV_SEG_SIZE", piece.c_str(), 1);
  setenv("UCX_SYSV_FIFO_SIZE", "32", 1);
  setenv("UCX_SYSV_RX_BUFS_GROW", "128", 1);
  // Between hosts: a small message waits behind what the system has taken in of large ones.
  setenv("UCX_TCP_SNDBUF", "64k", 1);
  // Handed over in pieces of 8 KiB, as by default, so small a buffer does not keep a link busy that
  // carries bulk in both directions: the system counts what it adds to each piece, too.
  setenv("UCX_TCP_TX_SEG_SIZE", "64k", 1);
  setenv("UCX_TCP_RX_SEG_SIZE", "64k", 1);
  ucp_config_t* config = nullptr;
  check_ucx(ucp_config_read(nullptr, nullptr, &config), "ucp_config_read");
  // System V segments are marked for removal as they are made, before any other process can know
  // them; POSIX ones keep a name while they are being filled, which a kill would leave behind.
  modify(config, "TLS", interface.empty() ? "sysv,self" : "tcp");
  // UCX listens on every interface that it may use.
  if (!interface.empty()) modify(config, "NET_DEVICES", interface.c_str());
  modify(config, "RNDV_THRESH", "inf");
  // When a connection breaks in the middle of a send from the caller's own memory, UCX 1.13 counts
  // its completion twice and aborts the process; a send from UCX's copy has none to count.
  if (!interface.empty()) modify(config, "ZCOPY_THRESH", "inf");
  modify(config, "KEEPALIVE_INTERVAL", "inf");
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS;
  params.features = UCP_FEATURE_TAG | UCP_FEATURE_WAKEUP;
  params.estimated_num_eps = 1;
  const ucs_status_t status = ucp_init(&params, config, &context_);
  ucp_config_release(config);
  check_ucx(status, "ucp_init");
}

UcxContext::~UcxContext() { ucp_cleanup(context_); }

Channel::Channel(const UcxContext& context, Rank peer, uint32_t incarnation)
    : peer_(peer), incarnation_(incarnation) {
  // A segment exists for a few microseconds before it is marked for removal. The launcher sweeps
  // after a node that dies there; a node must not die there because its launcher did.
  const OutliveLauncher guard;
  ucp_worker_params_t params{};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  params.thread_mode = UCS_THREAD_MODE_SINGLE;
  check_ucx(ucp_worker_create(context.get(), &params, &worker_), "ucp_worker_create", peer);
  check_ucx(ucp_worker_get_efd(worker_, &event_fd_), "ucp_worker_get_efd", peer);
}

Channel::~Channel() {
  if (abandoned_) return;
  close();
  ucp_worker_destroy(worker_);
}

std::string Channel::address() const {
  ucp_address_t* address = nullptr;
  size_t bytes = 0;
  check_ucx(ucp_worker_get_address(worker_, &address, &bytes), "ucp_worker_get_address", peer_);
  std::string copy(reinterpret_cast<const char*>(address), bytes);
  ucp_worker_release_address(worker_, address);
  return copy;
}

void Channel::connect(const std::string& address) {
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.address = reinterpret_cast<const ucp_address_t*>(address.data());
  params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  params.err_handler.cb = ignore_error;
  const ucs_status_t status = ucp_ep_create(worker_, &params, &endpoint_);
  if (status == UCS_OK) return;
  endpoint_ = nullptr;
  failure_ = std::string("UCX: ucp_ep_create: ") + ucs_status_string(status);
}

void Channel::close() {
  constexpr int kRounds = 10000;
  if (closed_) return;
  for (int i = 0; i < kRounds && ucp_worker_progress(worker_) != 0; ++i) {
  }
  closed_ = true;
  if (standing_receive_) ucp_request_cancel(worker_, standing_receive_);
  if (!endpoint_) return;
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  param.flags = UCP_EP_CLOSE_FLAG_FORCE;
  void* request = ucp_ep_close_nbx(endpoint_, &param);
  endpoint_ = nullptr;
  if (!UCS_PTR_IS_PTR(request)) return;
  for (int i = 0; i < kRounds && ucp_request_check_status(request) == UCS_INPROGRESS; ++i)
    ucp_worker_progress(worker_);
  ucp_request_free(request);
}

}  // namespace tutti::process
