#include "strategies/parameter_server/postbox.h"

#include <cstring>
#include <utility>

namespace tutti::parameter_server {

void Postbox::publish(Rank to, const Request& request, const std::vector<Decided>& decided) {
  std::vector<std::byte> message(sizeof(Request) + decided.size() * sizeof(Decided));
  std::memcpy(message.data(), &request, sizeof(Request));
  if (!decided.empty())
    std::memcpy(message.data() + sizeof(Request), decided.data(), decided.size() * sizeof(Decided));
  post(to, request_tag(), std::move(message));
}

void Postbox::tell(const Notice& notice, Rank to) {
  std::vector<std::byte> message(sizeof(Notice));
  std::memcpy(message.data(), &notice, sizeof(Notice));
  for (Rank rank = 0; rank < node_.endpoint().size(); ++rank) {
    if (rank == node_.endpoint().rank() || (to != kAnyRank && rank != to)) continue;
    if (!node_.membership().alive(rank)) continue;
    post(rank, rank < ring_.first_server() ? notice_tag(notice.shard) : notice_tag(), message);
  }
}

void Postbox::post(Rank to, Tag tag, std::vector<std::byte> message) {
  const size_t most = 64 * static_cast<size_t>(node_.endpoint().size());
  if (posts_.size() >= most) posts_.pop_front();  // small messages: those before are gone
  Post& post = posts_.emplace_back();
  post.message = std::move(message);
  post.sending = node_.endpoint().send(to, tag, post.message);
}

void Postbox::finish(double timeout_s) {
  for (Post& post : posts_)
    if (post.sending.pending()) node_.endpoint().wait(post.sending, timeout_s);
}

}  // namespace tutti::parameter_server
