// Which receive takes which message, at one node: the classic two queues of message passing, the
// receives that were posted and the messages that came unexpected, per tag. Knows no time.
//
// Both queues keep their order, so that messages of one peer and tag are taken as they were sent,
// and a receive from any rank takes what arrived first.
#pragma once

#include <cstdint>
#include <list>
#include <unordered_map>

#include "fabric/tag.h"

namespace tutti::simulation {

class Matching {
 public:
  // Numbers of messages and receives are never 0 and grow in the order of their making.
  using Id = uint64_t;

  // A message has arrived: the receive that takes it, or 0 and it stays here.
  Id arrive(Tag tag, Rank from, Id message);
  // A receive is posted, `from` may be kAnyRank: the message that it takes, or 0 and it stays here.
  Id post(Tag tag, Rank from, Id receive);
  // Both go back to the place in the order that they had.
  Id arrive_again(Tag tag, Rank from, Id message);
  Id post_again(Tag tag, Rank from, Id receive);

  bool withdraw_message(Tag tag, Id message);
  bool withdraw_receive(Tag tag, Id receive);

 private:
  struct Entry {
    Id id;
    Rank from;
  };
  struct Bucket {
    std::list<Entry> messages;
    std::list<Entry> receives;
  };
  static bool accepts(const Entry& receive, Rank from) {
    return receive.from == kAnyRank || receive.from == from;
  }
  Id take_receive(Tag tag, Rank from);
  Id take_message(Tag tag, Rank from);
  bool withdraw(Tag tag, std::list<Entry> Bucket::*queue, Id id);
  void drop_if_empty(Tag tag);

  std::unordered_map<uint64_t, Bucket> buckets_;  // by the bits of the tag
};

}  // namespace tutti::simulation
