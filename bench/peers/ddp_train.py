#!/usr/bin/python3
"""PyTorch DistributedDataParallel over gloo, training LeNet on Fashion-MNIST.

The peer of `tutti train` with allreduce: one process per worker, one thread each, the data set as
one tensor in memory and batches gathered from it by index, which is the fastest plain loop. Prints
one JSON line: {"impl", "processes", "batch", "samples_per_s": [one per block of steps]}.
"""
import argparse
import gzip
import json
import os
import tempfile
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")

import numpy
import torch
import torch.distributed
import torch.multiprocessing
from torch import nn

DIRECTORY = "/usr/share/datasets/fashion-mnist"


def read_idx(path):
    with gzip.open(path) as file:
        content = file.read()
    shape = numpy.frombuffer(content, ">u4", count=content[3], offset=4)
    return numpy.frombuffer(content, numpy.uint8, offset=4 + 4 * content[3]).reshape(shape)


def read_images(part):
    images = read_idx(f"{DIRECTORY}/{part}-images-idx3-ubyte.gz").astype(numpy.float32)
    labels = read_idx(f"{DIRECTORY}/{part}-labels-idx1-ubyte.gz").astype(numpy.int64)
    images = (images / 255 - 0.2860) / 0.3530
    return torch.from_numpy(images).unsqueeze(1), torch.from_numpy(labels)


def lenet():
    return nn.Sequential(
        nn.Conv2d(1, 20, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(20, 50, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(800, 500), nn.ReLU(), nn.Dropout(0.5),
        nn.Linear(500, 10))


def accuracy(model):
    images, labels = read_images("t10k")
    model.eval()
    with torch.no_grad():
        scores = torch.cat([model(part) for part in images.split(500)])
    return (scores.argmax(1) == labels).float().mean().item()


def worker(rank, options, store):
    torch.set_num_threads(1)
    torch.manual_seed(1)
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{store}/store", rank=rank, world_size=options.processes)
    images, labels = read_images("train")
    model = nn.parallel.DistributedDataParallel(lenet(), gradient_as_bucket_view=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    loss_of = nn.CrossEntropyLoss()
    global_batch = options.batch * options.processes
    order, position = torch.randperm(len(labels)), 0  # the same in all: same seed

    def train(steps):
        nonlocal order, position
        for _ in range(steps):
            if position + global_batch > len(order):
                order, position = torch.randperm(len(labels)), 0
            start = position + rank * options.batch
            mine = order[start:start + options.batch]
            position += global_batch
            optimizer.zero_grad()
            loss_of(model(images[mine]), labels[mine]).backward()
            optimizer.step()

    train(options.warmup)
    rates = []
    for _ in range(options.blocks):
        torch.distributed.barrier()
        start = time.perf_counter()
        train(options.steps)
        torch.distributed.barrier()
        rates.append(options.steps * global_batch / (time.perf_counter() - start))
    if rank == 0:
        result = {"impl": "pytorch_ddp", "processes": options.processes, "batch": options.batch,
                  "samples_per_s": [round(rate, 1) for rate in rates]}
        if options.accuracy:
            result["accuracy"] = accuracy(model.module)
        print(json.dumps(result), flush=True)
    torch.distributed.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--batch", type=int, default=64, help="samples per process and step")
    parser.add_argument("--steps", type=int, default=50, help="in a block")
    parser.add_argument("--blocks", type=int, default=5)
    parser.add_argument("--warmup", type=int, default=20, help="steps that are not timed")
    parser.add_argument("--accuracy", action="store_true", help="also on the test images")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tutti-ddp-") as store:
        torch.multiprocessing.spawn(worker, (options, store), nprocs=options.processes)


if __name__ == "__main__":
    main()
