// How UCX is asked to send and to receive: the callback that ends it, and what it is given.
#pragma once

#include <ucp/api/ucp.h>

#include <cstdint>

namespace tutti::process {

inline ucp_request_param_t receive_param(ucp_tag_recv_nbx_callback_t callback, void* user_data) {
  ucp_request_param_t param{};
  // Ending always by the callback, never at once, leaves one path to think about.
  param.op_attr_mask =
      UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
  param.cb.recv = callback;
  param.user_data = user_data;
  return param;
}

inline ucp_request_param_t send_param(ucp_send_nbx_callback_t callback, void* user_data) {
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.cb.send = callback;
  param.user_data = user_data;
  return param;
}

// Sends a message of no bytes, of which nothing more is heard here.
inline void send_notice(ucp_ep_h endpoint, uint64_t tag) {
  const ucp_request_param_t param =
      send_param([](void* request, ucs_status_t, void*) { ucp_request_free(request); }, nullptr);
  ucp_tag_send_nbx(endpoint, nullptr, 0, tag, &param);
}

}  // namespace tutti::process
