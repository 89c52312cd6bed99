"""A program of forty lines, as somebody brings it: data-parallel on CPUs, resumable, unknown to this project."""

import os
import sys
from pathlib import Path

import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

from ultracluster_job import beat, log, resume_directory, stop_requested

steps, output = int(sys.argv[1]), Path(os.environ["ULTRACLUSTER_RUN"])
torch.manual_seed(0)
distributed.init_process_group("gloo")
model = DistributedDataParallel(torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
first, checkpoint, stop = 1, resume_directory(), False
if checkpoint:
    state = torch.load(checkpoint)
    model.module.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    first = state["step"] + 1
for step in range(first, steps + 1):
    inputs = torch.randn(16, 8, generator=torch.Generator().manual_seed(step))
    loss = (model(inputs) - inputs.sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    beat()
    loss.backward()
    optimizer.step()
    log(step, loss.item(), steps=steps, sequences=16)
    stop = stop_requested()
    if distributed.get_rank() == 0 and (stop or step % 5 == 0):
        (output / "checkpoints").mkdir(exist_ok=True)
        state = {"step": step, "model": model.module.state_dict(), "optimizer": optimizer.state_dict()}
        torch.save(state, output / "checkpoints/new")
        (output / "checkpoints/new").rename(output / f"checkpoints/step-{step}")
    if stop:
        break
distributed.barrier()  # the first rank may still be saving
sys.stdout.flush()
os._exit(75 if stop else 0)  # Python's own end may abort while threads of gloo are at work
