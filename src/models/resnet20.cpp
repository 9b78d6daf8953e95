// He, Zhang, Ren and Sun, "Deep residual learning for image recognition" (CVPR 2016), section 4.2:
// the network for CIFAR, three stages of basic blocks whose shortcuts have no parameters (option
// A). Statistics of a batch would depend on how many workers share it. So there is group norm (Wu
// and He, ECCV 2018) by default, and batch norm over a fixed number of samples on request (ghost
// batches: Hoffer, Hubara and Soudry, "Train longer, generalize better", NeurIPS 2017): where
// shares are multiples of it, any number of workers normalises the same samples together.
#include "models/resnet20.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/error.h"
#include "models/builder.h"
#include "models/common_keys.h"

namespace tutti {
namespace {

constexpr Bounds kGhostBatch{2, 1e6};

void refuse_misfits(const Resnet20Model& model, const std::vector<int64_t>& shape) {
  if (shape.size() != 3)
    throw ConfigError("task.model", fmt::format("model resnet20 takes images of shape [channels, "
                                                "height, width], but a sample is [{}]; use mlp",
                                                fmt::join(shape, ", ")));
  int64_t below = 1;
  for (int64_t width : model.channels) {
    if (model.norm == NormKind::kGroup && width % model.groups != 0)
      throw ConfigError("task.model.groups",
                        fmt::format("task.model.groups = {} does not divide the {} channels of a "
                                    "stage; choose both so that it does",
                                    model.groups, width));
    if (width < below)
      throw ConfigError("task.model.channels",
                        fmt::format("task.model.channels = [{}] falls from one stage to the next, "
                                    "but a shortcut can only add channels; let it rise",
                                    fmt::join(model.channels, ", ")));
    below = width;
  }
}

}  // namespace

void Resnet20Model::visit(Visitor& v) {
  visit_channels(v, channels, "of each stage");
  v.field("blocks", blocks, kBlockCount, "in each stage; 3 make 20 layers");
  choice(v, "norm", norm,
         "what is normalised together: groups of channels of a sample, or channels of a batch");
  if (norm == NormKind::kGroup)
    v.field("groups", groups, kWidth, "of channels that are normalised together");
  else
    v.field("ghost_batch", ghost_batch, kGhostBatch,
            "samples that are normalised together; where it divides the share of a worker, the "
            "result does not depend on the number of workers");
}

Architecture Resnet20Model::make(const std::vector<int64_t>& shape, int64_t classes) const {
  require_within("task.model.channels", channels, kWidth);
  require_within("task.model.blocks", blocks, kBlockCount);
  require_within("task.model.groups", groups, kWidth);
  require_within("task.model.ghost_batch", ghost_batch, kGhostBatch);
  refuse_misfits(*this, shape);
  Builder builder("resnet20", shape);
  const auto normalise = [&](const std::string& name) {
    if (norm == NormKind::kBatch)
      builder.batch_norm(name, ghost_batch);
    else
      builder.group_norm(name, groups);
  };
  builder.padded_convolution("conv1", channels.front(), 1);
  normalise("norm1");
  builder.relu();
  for (size_t stage = 0; stage < channels.size(); ++stage)
    for (int64_t block = 0; block < blocks; ++block) {
      const std::string name = fmt::format("layer{}.{}", stage + 1, block);
      const int64_t stride = stage > 0 && block == 0 ? 2 : 1;
      builder.skip(name + ".skip").padded_convolution(name + ".conv1", channels[stage], stride);
      normalise(name + ".norm1");
      builder.relu().padded_convolution(name + ".conv2", channels[stage], 1);
      normalise(name + ".norm2");
      builder.add(name + ".add").relu();
    }
  return builder.average_pool().finish(classes, "fc");
}

}  // namespace tutti
