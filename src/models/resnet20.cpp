// He, Zhang, Ren and Sun, "Deep residual learning for image recognition" (CVPR 2016), section 4.2:
// the network for CIFAR, three stages of basic blocks whose shortcuts have no parameters (option
// A). Statistics of a batch would depend on how many workers share it. So there is group norm (Wu
// and He, ECCV 2018) by default, and batch norm over a fixed number of samples on request (ghost
// batches: Hoffer, Hubara and Soudry, "Train longer, generalize better", NeurIPS 2017): where
// shares are multiples of it, any number of workers normalises the same samples together.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/error.h"
#include "models/builder.h"
#include "models/kinds.h"

namespace tutti {
namespace {

void refuse_misfits(const ModelConfig& config, const std::vector<int64_t>& shape,
                    const std::vector<int64_t>& channels) {
  if (shape.size() != 3)
    throw ConfigError("task.model", fmt::format("model resnet20 takes images of shape [channels, "
                                                "height, width], but a sample is [{}]; use mlp",
                                                fmt::join(shape, ", ")));
  int64_t below = 1;
  for (int64_t width : channels) {
    if (config.norm == "group" && width % config.groups != 0)
      throw ConfigError("task.model.groups",
                        fmt::format("task.model.groups = {} does not divide the {} channels of a "
                                    "stage; choose both so that it does",
                                    config.groups, width));
    if (width < below)
      throw ConfigError("task.model.channels",
                        fmt::format("task.model.channels = [{}] falls from one stage to the next, "
                                    "but a shortcut can only add channels; let it rise",
                                    fmt::join(channels, ", ")));
    below = width;
  }
}

}  // namespace

Architecture make_resnet20(const ModelConfig& config, const std::vector<int64_t>& shape,
                           int64_t classes) {
  const std::vector<int64_t> channels = channels_of(config);
  refuse_misfits(config, shape, channels);
  Builder builder("resnet20", shape);
  const auto norm = [&](const std::string& name) {
    if (config.norm == "batch")
      builder.batch_norm(name, config.ghost_batch);
    else
      builder.group_norm(name, config.groups);
  };
  builder.padded_convolution("conv1", channels.front(), 1);
  norm("norm1");
  builder.relu();
  for (size_t stage = 0; stage < channels.size(); ++stage)
    for (int64_t block = 0; block < config.blocks; ++block) {
      const std::string name = fmt::format("layer{}.{}", stage + 1, block);
      const int64_t stride = stage > 0 && block == 0 ? 2 : 1;
      builder.skip(name + ".skip").padded_convolution(name + ".conv1", channels[stage], stride);
      norm(name + ".norm1");
      builder.relu().padded_convolution(name + ".conv2", channels[stage], 1);
      norm(name + ".norm2");
      builder.add(name + ".add").relu();
    }
  return builder.average_pool().finish(classes, "fc");
}

}  // namespace tutti
