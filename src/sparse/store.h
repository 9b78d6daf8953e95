// A key-value store for C++ programs: rows of floats by 64-bit keys, spread over servers, with
// push, pull and push_pull from any node, and an update function of your own.
//
// Workers have the first ranks and servers the last ones. On a server:
//
//   StoreServer(node, layout, {.update = [](uint64_t key, auto row, auto state, auto pushed)
//   {...}})
//       .run();                      // until every worker has said goodbye or is lost
//
// and on a worker:
//
//   StoreClient store(node, layout);
//   store.pull(keys, rows);          // keys ascend; rows lie one after the other
//   store.push(keys, rows);          // returns when every server has applied it
//   store.push_pull(keys, mine, theirs);
//   store.close();                   // goodbye
//
// A worker always sees its own pushes. Pushes of several workers are applied one after the other,
// each as a whole on each server. A worker that sends nonsense is refused from then on, and the
// store goes on for the others. See docs/sparse.md and examples/key_value.cpp.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "core/bytes.h"
#include "fabric/node.h"
#include "sparse/row_table.h"
#include "sparse/store_messages.h"

namespace tutti {

struct StoreLayout {
  Rank first_server = 1;
  int servers = 1;
  size_t width = 1;  // values of a row
};

struct StoreSettings {
  // What a push does to a row. Without one it is added.
  using Update = std::function<void(uint64_t key, std::span<float> row, std::span<float> state,
                                    std::span<const float> pushed)>;
  Update update = nullptr;
  size_t state = 0;                     // floats beside each row for `update`; zero at first
  RowTable::Initial initial = nullptr;  // how a row starts; without one at zero
};

class StoreServer {
 public:
  StoreServer(Node& node, const StoreLayout& layout, StoreSettings settings);
  void run();

  const RowTable& table() const { return table_; }
  int64_t pushes() const { return pushes_; }    // that were applied
  int64_t refused() const { return refused_; }  // workers that sent nonsense

 private:
  struct Client {
    bool present = true;
    uint64_t sequence = 0;
    StoreRequest request;
    size_t missing = 0;  // messages of the request that are still to come
    Buffer<uint64_t> keys;
    Buffer<float> rows;
    Buffer<std::byte> answer;  // the reply, then its rows
    std::vector<Handle> sending;
  };
  struct Part {
    Rank client = kAnyRank;
    size_t bytes = 0;
  };

  bool over() const;
  void listen();
  void wait_for_news();
  void look_at_members();
  void begin(Rank from, std::span<std::byte> message);
  void expect(Rank from, Tag tag, std::span<std::byte> buffer);
  void part_arrived(const Part& part, const Completion& completion);
  void execute(Rank from, std::span<const uint64_t> keys, std::span<const float> pushed);
  // Updates the rows, and copies them to `answer` unless that is empty.
  void apply(std::span<const uint64_t> keys, std::span<const float> pushed,
             std::span<float> answer);
  void reply(Rank to, StoreReply::State state, size_t rows);
  void refuse(Rank from);
  void forget(Rank from);
  Client& client(Rank rank) { return clients_[static_cast<size_t>(rank)]; }

  Node& node_;
  StoreLayout layout_;
  StoreSettings settings_;
  RowTable table_;
  std::vector<Client> clients_;
  Buffer<std::byte> incoming_, current_;  // the request that arrives next, and the last one
  std::vector<Handle> handles_;           // the receive from anybody, then parts of requests
  std::vector<Part> part_of_;             // of the same index
  int64_t pushes_ = 0, refused_ = 0;
  double silent_s_ = 0;  // time waited for anybody; a clock would also count time while stopped
};

class StoreClient {
 public:
  StoreClient(Node& node, const StoreLayout& layout);

  // Keys ascend strictly; a row for each, one after the other. Throw Error when they do not, and
  // FabricError when a server is lost or refuses this worker.
  void push(std::span<const uint64_t> keys, std::span<const float> rows);
  void pull(std::span<const uint64_t> keys, std::span<float> rows);
  void push_pull(std::span<const uint64_t> keys, std::span<const float> pushed,
                 std::span<float> pulled);
  void close();

 private:
  // What is under way with one server.
  struct Talk {
    StoreRequest request;
    StoreReply reply;
    std::vector<uint64_t> keys;
    std::vector<float> pushed, pulled;
    Buffer<std::byte> outgoing, incoming;  // where request and reply are one message each
    std::vector<Handle> sending, receiving;
  };
  void exchange(uint32_t flags, std::span<const uint64_t> keys, std::span<const float> pushed,
                std::span<float> pulled);
  void start(size_t server, uint32_t flags, std::span<const uint64_t> keys,
             std::span<const float> pushed, std::span<float> pulled);
  void start_together(size_t server, std::span<const uint64_t> keys, std::span<const float> pushed);
  void start_apart(size_t server, std::span<const uint64_t> keys, std::span<const float> pushed,
                   std::span<float> pulled);
  void finish_talk(size_t server, std::span<float> pulled);
  template <class T>
  void take_part(size_t server, std::span<const T> all, size_t width, T* part) const;
  void put_back(size_t server, const float* part, std::span<float> all) const;
  Rank rank_of(size_t server) const { return layout_.first_server + static_cast<Rank>(server); }

  Node& node_;
  StoreLayout layout_;
  uint64_t sequence_ = 0;
  std::vector<Talk> talks_;
  std::vector<std::vector<uint32_t>> positions_;  // of each server's keys
};

}  // namespace tutti
