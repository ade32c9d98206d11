"""Serves hatchery-core with its real trainer on CPU: `serve_hatchery.py MODEL PORT API_KEY`.

The package's own launcher falls back to scripted answers on a machine without a GPU.
"""

import asyncio
import sys

import torch
import uvicorn
from hatchery.core import local_dev
from hatchery.core.gateway import create_app, set_config
from hatchery.core.worker import GPUWorker

WORKER = "cpu-0"
IDLE_SECONDS = 0.02
JOB_SECONDS = 300


async def work(worker: GPUWorker, queue, model: str) -> None:
    """Takes jobs from the gateway's queue, one at a time, for ever."""
    while True:
        job = await queue.dequeue(worker_id=WORKER, model_filter=model, visibility_timeout=JOB_SECONDS)
        if job is None:
            await asyncio.sleep(IDLE_SECONDS)
        else:
            await worker._process_one(job)


async def main(model: str, port: int, api_key: str) -> None:
    config = local_dev._build_config(api_key)
    set_config(config)
    app = create_app(config=config)
    await config.metadata.initialize()
    await config.queue.initialize()
    worker = GPUWorker(
        worker_id=WORKER,
        base_model_name=model,
        config=config,
        device="cpu",
        dtype=torch.float32,
        attn_implementation="eager",
    )
    await worker.register()
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=port, lifespan="off"))
    serving = asyncio.create_task(server.serve())
    working = asyncio.create_task(work(worker, config.queue, model))
    # A worker that fails ends the server too: a peer that never answers helps nobody.
    done, _ = await asyncio.wait({serving, working}, return_when=asyncio.FIRST_COMPLETED)
    working.cancel()
    for task in done:
        task.result()


asyncio.run(main(sys.argv[1], int(sys.argv[2]), sys.argv[3]))
