// What a server does otherwise for a sparse model: keys come with pushes and pulls, rows go out.
#include <fmt/format.h>

#include "sparse/keys.h"
#include "strategies/parameter_server/server.h"

namespace tutti::parameter_server {

// The keys of a push or a pull, and the gradients of a push. Until they are there, what the worker
// sends next has to wait.
void Server::receive_rows(int index, const Request& request) {
  Worker& sender = worker(index);
  RowShard& rows = *shard_.rows();
  const size_t slot = shard_.take_slot(), count = static_cast<size_t>(request.keys);
  sender.push = Push{request, slot, 0};
  const auto expect = [&](Tag tag, std::span<std::byte> buffer) {
    inbox_.expect(
        index, tag, buffer,
        {.kind = Arrival::kGradient, .shard = index_, .peer = index, .bytes = buffer.size()});
    ++sender.push->pieces_left;
  };
  const std::span<uint64_t> keys = rows.keys(slot, count);
  if (count == 0) return finish_push(index);
  expect(keys_tag(ring_.stream(index_, request.sequence)), writable_bytes_of(keys));
  if (request.flags & Request::kPush)
    expect(gradient_tag(ring_.stream(index_, request.sequence), 0), rows.gradients(slot, count));
}

bool Server::rows_make_sense(int index) {
  const std::span<const uint64_t> keys = shard_.rows()->keys(worker(index).push->slot);
  std::string fault = fault_of_keys(keys, context_.model.architecture().rows());
  for (size_t i = 0; i < keys.size() && fault.empty(); ++i)
    if (server_of(keys[i], static_cast<size_t>(config_.servers)) != static_cast<size_t>(index_))
      fault = fmt::format("key {}, which another server holds", keys[i]);
  if (!fault.empty()) refuse(index, fault);
  return fault.empty();
}

void Server::take_keys(int index, size_t slot) {
  const std::span<const uint64_t> keys = shard_.rows()->keys(slot);
  worker(index).keys.assign(keys.begin(), keys.end());
  free(slot);
}

void Server::answer_rows(int index, const Request& pull, Reply reply) {
  Worker& to = worker(index);
  const size_t count = to.keys.size() * shard_.rows()->width();
  to.sending.clear();  // it asked again, so it has the last reply
  if (to.staging.size() < count) to.staging = Buffer<float>(count);
  const std::span<float> rows = to.staging.span().first(count);
  shard_.rows()->read(to.keys, pull.flags & Request::kSnapshot, rows);
  send_reply(index, reply, rows);
}

}  // namespace tutti::parameter_server
