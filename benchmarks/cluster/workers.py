"""Processes of a simulated cluster: a scheduler, or several workers of one thread each, on the loopback address.

    python -m benchmarks.cluster.workers scheduler
    python -m benchmarks.cluster.workers workers tcp://127.0.0.1:PORT 25

The scheduler prints its address. Workers of one process share its interpreter lock, which does not matter to tasks that
sleep; they have connections of their own. Both end when the scheduler is closed, or when they are terminated.
"""

import asyncio
import logging
import sys

from distributed import Scheduler, Worker

HOST = "127.0.0.1"


async def schedule():
    """Run a scheduler until it is closed."""
    async with Scheduler(host=HOST, port=0, dashboard=False) as scheduler:
        print(scheduler.address, flush=True)
        await scheduler.finished()


async def work(address, n_workers):
    """Run workers until the scheduler closes them."""
    workers = [Worker(address, host=HOST, nthreads=1, memory_limit=0, dashboard=False, name=f"{id(address)}-{k}")
               for k in range(n_workers)]  # fmt: skip
    await asyncio.gather(*workers)
    await asyncio.gather(*(worker.finished() for worker in workers))


if __name__ == "__main__":
    logging.getLogger("distributed").setLevel(logging.ERROR)  # workers that leave at the end are no news
    if sys.argv[1] == "scheduler":
        asyncio.run(schedule())
    else:
        asyncio.run(work(sys.argv[2], int(sys.argv[3])))
