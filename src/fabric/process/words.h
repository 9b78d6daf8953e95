// Words that nodes of different hosts tell each other beside messages: eight bytes and a tag each.
// One that is said before its channel is connected is kept until then.
#pragma once

#include <cstdint>
#include <vector>

#include "fabric/process/channel.h"

namespace tutti::process {

class Words {
 public:
  void say(Channel& channel, uint64_t tag, uint64_t value);
  void say_kept();  // a channel was connected
  void forget(const Channel& channel);

 private:
  struct Word {
    Channel* channel;
    uint64_t tag, value;
  };
  static void on_word_sent(void* request, ucs_status_t status, void* word);

  std::vector<Word> kept_;
};

}  // namespace tutti::process
