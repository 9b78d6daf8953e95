#include "fabric/virtual/matching.h"

#include <algorithm>

namespace tutti::simulation {

Matching::Id Matching::take_receive(Tag tag, Rank from) {
  auto& receives = buckets_[tag.bits()].receives;
  const auto taker = std::find_if(receives.begin(), receives.end(),
                                  [&](const Entry& receive) { return accepts(receive, from); });
  if (taker == receives.end()) return 0;
  const Id id = taker->id;
  receives.erase(taker);
  drop_if_empty(tag);
  return id;
}

Matching::Id Matching::take_message(Tag tag, Rank from) {
  auto& messages = buckets_[tag.bits()].messages;
  const auto taken = std::find_if(messages.begin(), messages.end(), [&](const Entry& message) {
    return accepts({0, from}, message.from);
  });
  if (taken == messages.end()) return 0;
  const Id id = taken->id;
  messages.erase(taken);
  drop_if_empty(tag);
  return id;
}

Matching::Id Matching::arrive(Tag tag, Rank from, Id message) {
  if (const Id receive = take_receive(tag, from)) return receive;
  buckets_[tag.bits()].messages.push_back({message, from});
  return 0;
}

Matching::Id Matching::post(Tag tag, Rank from, Id receive) {
  if (const Id message = take_message(tag, from)) return message;
  buckets_[tag.bits()].receives.push_back({receive, from});
  return 0;
}

Matching::Id Matching::arrive_again(Tag tag, Rank from, Id message) {
  if (const Id receive = take_receive(tag, from)) return receive;
  // Before what the same peer sent later; the order among different peers is nobody's business.
  auto& messages = buckets_[tag.bits()].messages;
  const auto later = std::find_if(messages.begin(), messages.end(), [&](const Entry& other) {
    return other.from == from && other.id > message;
  });
  messages.insert(later, {message, from});
  return 0;
}

Matching::Id Matching::post_again(Tag tag, Rank from, Id receive) {
  if (const Id message = take_message(tag, from)) return message;
  auto& receives = buckets_[tag.bits()].receives;
  const auto later = std::find_if(receives.begin(), receives.end(),
                                  [&](const Entry& other) { return other.id > receive; });
  receives.insert(later, {receive, from});
  return 0;
}

bool Matching::withdraw(Tag tag, std::list<Entry> Bucket::*queue, Id id) {
  const auto bucket = buckets_.find(tag.bits());
  if (bucket == buckets_.end()) return false;
  auto& entries = bucket->second.*queue;
  const auto found =
      std::find_if(entries.begin(), entries.end(), [&](const Entry& e) { return e.id == id; });
  if (found == entries.end()) return false;
  entries.erase(found);
  drop_if_empty(tag);
  return true;
}

bool Matching::withdraw_message(Tag tag, Id message) {
  return withdraw(tag, &Bucket::messages, message);
}

bool Matching::withdraw_receive(Tag tag, Id receive) {
  return withdraw(tag, &Bucket::receives, receive);
}

// Tags name steps: without this a long run would keep a bucket for each step it ever made.
void Matching::drop_if_empty(Tag tag) {
  const auto bucket = buckets_.find(tag.bits());
  if (bucket == buckets_.end()) return;
  if (bucket->second.messages.empty() && bucket->second.receives.empty()) buckets_.erase(bucket);
}

}  // namespace tutti::simulation
