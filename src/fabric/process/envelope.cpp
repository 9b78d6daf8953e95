#include "fabric/process/envelope.h"

#include "fabric/process/ucx_request.h"

namespace tutti::process {

void Envelopes::receive(Operation& operation, Channel& channel, std::byte* data, size_t bytes,
                        uint64_t tag, uint64_t mask) {
  Envelope& envelope = seal(operation, channel);
  note_request(envelope, operation,
               envelope.loan.receive(channel.worker(), data, bytes, tag, mask,
                                     receive_param(on_received, &envelope)));
}

Envelope& Envelopes::receive(Operation& operation, Channel& channel, ucp_tag_message_h message) {
  Envelope& envelope = seal(operation, channel);
  note_request(envelope, operation,
               envelope.loan.take(channel.worker(), operation.data, operation.bytes, message,
                                  receive_param(on_received, &envelope)));
  return envelope;
}

void Envelopes::note_request(Envelope& envelope, const Operation& operation, void* request) {
  if (UCS_PTR_IS_ERR(request))
    check_ucx(UCS_PTR_STATUS(request), "receive", envelope.channel->peer());
  // Unless it was there already, and the envelope is used again.
  if (operation.envelope == &envelope) envelope.request = request;
}

void Envelopes::on_received(void* request, ucs_status_t status, const ucp_tag_recv_info_t* info,
                            void* user_data) {
  auto& envelope = *static_cast<Envelope*>(user_data);
  envelope.request = nullptr;
  envelope.status = status;
  envelope.message = *info;  // it lies in the request
  ucp_request_free(request);
  envelope.pool->arrivals_.arrive(envelope);
}

}  // namespace tutti::process
