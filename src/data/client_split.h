// Which client of a federation holds which training samples.
//
//  iid        at random, in equal shares
//  shards     every client has `labels` labels; the samples of a label are cut into as many shards
//             as clients have it (Li et al., "Federated learning on non-iid data silos", ICDE 2022,
//             where it is #C = k; after the shards of McMahan et al., AISTATS 2017)
//  dirichlet  the samples of each label are dealt in shares drawn from Dirichlet(alpha) (Yurochkin
//             et al., "Bayesian nonparametric federated learning of neural networks", ICML 2019)
//  quantity   labels at random, sizes drawn from Dirichlet(alpha)
#pragma once

#include "core/schema.h"
#include "data/data_sizes.h"

namespace tutti {

enum class ClientSplitKind { kIid, kShards, kDirichlet, kQuantity };
constexpr auto words(ClientSplitKind) {
  return WordList<4>{"iid", "shards", "dirichlet", "quantity"};
}

// [strategy] split = "iid", or a table with a kind and these settings.
struct ClientSplitConfig {
  ClientSplitKind kind = ClientSplitKind::kIid;
  double alpha = 0.5;  // dirichlet, quantity: the smaller the more clients differ
  int64_t labels = 2;  // shards: of each client
};

void visit(Visitor& visitor, ClientSplitConfig& config);  // all keys but `kind`
bool splits_by_label(const ClientSplitConfig& config);

// The indices of all clients one after the other: what an idle client is besides its record.
class ClientSplit {
 public:
  ClientSplit(std::vector<uint32_t> samples, std::vector<uint32_t> ends)
      : samples_(std::move(samples)), ends_(std::move(ends)) {}
  size_t clients() const { return ends_.size(); }
  std::span<const uint32_t> of(size_t client) const {
    const size_t begin = client == 0 ? 0 : ends_[client - 1];
    return std::span(samples_).subspan(begin, ends_[client] - begin);
  }
  size_t memory_bytes() const { return (samples_.size() + ends_.size()) * sizeof(uint32_t); }

 private:
  std::vector<uint32_t> samples_;
  std::vector<uint32_t> ends_;  // of each client's samples
};

// Throws ConfigError naming the settings below [strategy] that this data cannot satisfy.
void validate_client_split(const DataSizes& data, const ClientSplitConfig& config, int64_t clients);
// Every training sample is in exactly one client, and every client has at least one. A function of
// data, settings and seed: each node can make it for itself.
ClientSplit split_clients(const Data& data, const ClientSplitConfig& config, int64_t clients,
                          uint64_t seed);

// How many samples of each label a client has. Empty for regression.
std::vector<int64_t> label_counts(const Data& data, std::span<const uint32_t> samples);

}  // namespace tutti
