// What a server does otherwise for a sparse model: keys come with pushes and pulls, rows go out.
#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
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
    if (server_of(keys[i], static_cast<size_t>(ring_.shards())) != static_cast<size_t>(index_))
      fault = fmt::format("key {}, which another server holds", keys[i]);
  if (!fault.empty()) refuse(index, fault);
  return fault.empty();
}

void Server::take_keys(int index, size_t slot) {
  const std::span<const uint64_t> keys = shard_.rows()->keys(slot);
  worker(index).keys.assign(keys.begin(), keys.end());
  free(slot);
}

void Server::answer_rows(int index, const Request& pull, const Reply& reply) {
  Worker& to = worker(index);
  const size_t count = static_cast<size_t>(pull.keys) * shard_.rows()->width();
  if (!to.heard) {  // only the head that was asked has the keys: they will be said again
    send_reply(index, reply, {});
    to.reply.elements = count;
    return;
  }
  to.sending.clear();  // it asked again, so it has the last reply
  if (to.staging.size() < count) to.staging = Buffer<float>(count);
  const std::span<float> rows = to.staging.span().first(count);
  shard_.rows()->read(to.keys, pull.flags & Request::kSnapshot, rows);
  send_reply(index, reply, rows);
}

// As update() does, but of the keys that have a gradient, which go along with it.
void Server::update_rows(std::span<const size_t> slots, double factor, double rate) {
  Chain::Item& item = *current_;
  RowShard& rows = *shard_.rows();
  if (replaying_)
    return rows.apply(RowSum{values_in<uint64_t>(item.rest), item.values.span()}, rate);
  item.entry.updated = 1;
  const RowSum sum = rows.apply(slots, factor, rate);
  if (!chain_.has_successor() || sum.keys.empty()) return;
  const auto keys = bytes_of(sum.keys);
  item.rest.assign(keys.begin(), keys.end());
  item.values = Buffer<float>(sum.keys.size() * rows.width());
  if (!node_.clock().cost_only())
    std::copy(sum.rows.begin(), sum.rows.end(), item.values.span().begin());
  item.entry.bytes = item.rest.size();
  item.entry.elements = item.values.size();
  node_.clock().charge({.flops = 0, .memory_bytes = 8.0 * static_cast<double>(item.values.size())});
}

// Which rows a state consists of, and how many were kept.
void Server::save_rows(Archive& state) {
  const std::span<const uint64_t> made = shard_.rows()->table().keys();
  std::vector<uint64_t> keys(made.begin(), made.end());
  uint64_t kept = shard_.rows()->kept();
  state(keys, kept);
}

void Server::restore_rows(Archive& state, std::span<const float> values) {
  std::vector<uint64_t> keys;
  uint64_t kept = 0;
  state(keys, kept);
  if (!shard_.rows()->restore(keys, kept, values))
    throw DataError("the state of a shard has another size");
}

}  // namespace tutti::parameter_server
