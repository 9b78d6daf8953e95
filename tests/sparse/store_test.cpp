// The key-value store on both fabrics: what is pushed is there, and nonsense harms its sender only.
#include "sparse/store.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>

#include "core/error.h"
#include "core/random.h"
#include "fabric/exchange.h"
#include "jobs/plugins.h"

namespace tutti {
namespace {

constexpr int kWorkers = 3;

class Store : public testing::TestWithParam<std::string> {
 protected:
  std::vector<NodeOutcome> run(int servers, const Fabric::Body& worker,
                               const StoreSettings& settings = {}, size_t width = 2) {
    ClusterConfig cluster;
    cluster.fabric = value_of(GetParam(), cluster.fabric);
    cluster.workers = kWorkers;
    cluster.timeout_s = 30;
    std::vector<std::string> roles(kWorkers, "worker");
    roles.insert(roles.end(), static_cast<size_t>(servers), "server");
    layout_ = {.first_server = kWorkers, .servers = servers, .width = width};
    const std::atomic<bool> never{false};
    return make_fabric(cluster, roles, 1)
        ->run(
            [&](Node& node) -> std::string {
              if (node.endpoint().rank() < kWorkers) return worker(node);
              StoreServer server(node, layout_, settings);
              server.run();
              return fmt::format("{} rows, {} refused", server.table().size(), server.refused());
            },
            never);
  }
  void expect_done(const std::vector<NodeOutcome>& outcomes, int but = -1) {
    for (size_t rank = 0; rank < outcomes.size(); ++rank)
      if (static_cast<int>(rank) != but) {
        EXPECT_EQ(outcomes[rank].kind, NodeOutcome::Kind::kDone)
            << "rank " << rank << ": " << outcomes[rank].error;
      }
  }
  StoreLayout layout_;
};

// Waits until the row of key 0 has `count` in it: a barrier of the store's own.
void wait_for(StoreClient& store, float count) {
  std::vector<float> row(2);
  do store.pull(std::vector<uint64_t>{0}, row);
  while (row[0] < count);
}

// Some lists go in one message with their rows, others are too long for that.
TEST_P(Store, AddsUpWhatWorkersPush) {
  for (const auto& [servers, rows] : {std::pair(1, 500), {2, 500}, {1, 9000}, {2, 9000}}) {
    const auto outcomes = run(servers, [&](Node& node) -> std::string {
      Random random(7, Stream::kTest, static_cast<uint32_t>(node.endpoint().rank()));
      StoreClient store(node, layout_);
      std::vector<uint64_t> keys;
      for (uint64_t key = 1; key < static_cast<uint64_t>(rows); ++key)
        keys.push_back(key * 0x1234567890123);
      std::vector<float> ones(keys.size() * 2, 1.0F), seen(ones.size());
      for (int i = 1; i <= 20; ++i) {
        if (i % 2)
          store.push(keys, ones);
        else
          store.push_pull(keys, ones, seen);
        store.pull(keys, seen);  // its own pushes are there at once
        for (const float value : seen)
          if (value < static_cast<float>(i)) throw Error("a push was not seen by its worker");
      }
      store.push(std::vector<uint64_t>{0}, std::vector<float>{1, 0});
      wait_for(store, kWorkers);
      store.pull(keys, seen);
      for (const float value : seen)
        if (value != 20 * kWorkers) throw Error(fmt::format("a sum is {}", value));
      store.close();
      return "";
    });
    expect_done(outcomes);
    if (servers == 1) {
      EXPECT_EQ(outcomes.back().result, fmt::format("{} rows, 0 refused", rows));
    }
  }
}

TEST_P(Store, CallsTheUpdateFunctionWithKeyAndState) {
  StoreSettings settings;
  settings.state = 1;
  settings.initial = [](uint64_t key, std::span<float> row) { row[0] = static_cast<float>(key); };
  settings.update = [](uint64_t key, std::span<float> row, std::span<float> state,
                       std::span<const float> pushed) {
    state[0] += 1;  // how often
    row[0] += pushed[0] * static_cast<float>(key);
    row[1] = state[0];
  };
  expect_done(run(
      2,
      [&](Node& node) -> std::string {
        StoreClient store(node, layout_);
        const std::vector<uint64_t> key = {10 + static_cast<uint64_t>(node.endpoint().rank())};
        std::vector<float> row(2);
        for (int i = 0; i < 3; ++i) store.push_pull(key, std::vector<float>{2, 0}, row);
        const auto value = static_cast<float>(key[0]);
        if (row[0] != 7 * value || row[1] != 3) throw Error("not what the function computes");
        store.close();
        return "";
      },
      settings));
}

TEST_P(Store, RefusesListsThatDoNotAscendBeforeTheyAreSent) {
  expect_done(run(1, [&](Node& node) -> std::string {
    StoreClient store(node, layout_);
    std::vector<float> rows(4);
    int refused = 0;
    for (const std::vector<uint64_t>& keys :
         {std::vector<uint64_t>{2, 1}, std::vector<uint64_t>{1, 1}, std::vector<uint64_t>{1}}) {
      try {
        store.push(keys, rows);
      } catch (const Error&) {
        ++refused;
      }
    }
    if (refused != 3) throw Error("nonsense was sent");
    store.push(std::vector<uint64_t>{1, 2}, rows);
    store.close();
    return "";
  }));
}

// A worker that writes its own messages: some of each kind that cannot be meant.
std::string talk_nonsense(Node& node, Rank server, uint64_t seed) {
  const auto send = [&](Tag tag, std::span<const std::byte> bytes) {
    Handle handle = node.endpoint().send(server, tag, bytes);
    node.endpoint().wait(handle, 0.2);
  };
  StoreRequest request{.flags = StoreRequest::kPush, .sequence = 1, .keys = 3};
  std::vector<uint64_t> keys = {1, 2, 3};
  size_t values = 6;
  Random random(seed, Stream::kTest);
  switch (seed % 11) {
    case 0:
      keys = {3, 2, 1};
      break;
    case 1:
      keys = {1, 2, 2};
      break;
    case 2:
      request.keys = kMostStoreKeys + 1;
      break;
    case 3:
      values = 9;
      break;  // rows of another width
    case 4:
      request.magic = 7;
      break;
    case 5:
      request.flags = 64;
      break;
    case 6:
      request.sequence = 5;
      break;
    case 7:  // as if keys and rows were in the message
      request.flags |= StoreRequest::kTogether;
      break;
    case 8:
      request.flags |= StoreRequest::kTogether;
      request.keys = uint64_t{1} << 62;
      break;
    case 9:
      request.flags |= StoreRequest::kTogether;
      break;
    default:
      keys.resize(2);
      break;
  }
  std::vector<std::byte> message(sizeof(request));
  std::memcpy(message.data(), &request, sizeof(request));
  // Of the right size, but a key is zero three times; or larger than any request can be.
  if (seed % 11 == 9) message.resize(seed < 11 ? sizeof(request) + 3 * 16 : 2 * kEagerBytes);
  send(store_request_tag(), message);
  send(store_keys_tag(request.sequence), bytes_of(std::span<const uint64_t>(keys)));
  send(store_push_tag(request.sequence),
       bytes_of(std::span<const float>(std::vector<float>(values))));
  std::vector<std::byte> noise(random.below(64));
  for (std::byte& byte : noise) byte = static_cast<std::byte>(random.below(256));
  send(store_request_tag(), noise);
  return "";
}

TEST_P(Store, GoesOnWithoutAWorkerThatSendsNonsense) {
  for (uint64_t seed = 0; seed < 22; ++seed) {
    const auto outcomes = run(1, [&](Node& node) -> std::string {
      if (node.endpoint().rank() == 1) return talk_nonsense(node, kWorkers, seed);
      StoreClient store(node, layout_);
      for (int i = 0; i < 20; ++i) store.push(std::vector<uint64_t>{0}, std::vector<float>{1, 0});
      wait_for(store, 40);
      store.close();
      return "";
    });
    expect_done(outcomes);
    EXPECT_EQ(outcomes.back().result, "1 rows, 1 refused") << "seed " << seed;
  }
}

TEST_P(Store, GoesOnWithoutAWorkerThatIsLost) {
  if (GetParam() == "virtual") return;  // a process can be killed without further ado
  const auto outcomes = run(2, [&](Node& node) -> std::string {
    StoreClient store(node, layout_);
    if (node.endpoint().rank() == 1) _exit(9);
    for (int i = 0; i < 20; ++i) store.push(std::vector<uint64_t>{0}, std::vector<float>{1, 0});
    wait_for(store, 40);
    store.close();
    return "";
  });
  expect_done(outcomes, 1);
}

INSTANTIATE_TEST_SUITE_P(Fabrics, Store, testing::Values("process", "virtual"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace tutti
