"""Who measures the points: processes of this machine, or a Dask or Ray cluster that the user has.

An engine takes tasks and gives (number of the task, records) as they are done, in any order. Schedulers are those of
the engines; here is only how they are asked.
"""

import multiprocessing
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from typing import Any

from opusc.sweep.measure import Record, Task, measure

__all__ = ["ENGINES", "Engine", "EngineError"]

#: Tasks, and how many workers (processes) or where the cluster is ("" for a new local one).
Engine = Callable[[Sequence[Task], int, str], Iterator[tuple[int, list[Record]]]]


class EngineError(Exception):
    """The engine is not installed, cannot be reached, or lost a worker: a sentence."""


def _processes(tasks: Sequence[Task], workers: int, address: str) -> Iterator[tuple[int, list[Record]]]:
    if address:
        raise EngineError("processes run on this machine only; `--engine dask` or `ray` takes an address")
    # Spawned, not forked: the parent may have threads (a progress line, numpy's pool).
    context = multiprocessing.get_context("spawn")
    many = min(workers, max(len(tasks), 1))
    with ProcessPoolExecutor(max_workers=many, mp_context=context, initializer=_quiet) as pool:
        try:
            futures = {pool.submit(measure, task): number for number, task in enumerate(tasks)}
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BrokenProcessPool as error:
            raise EngineError("a worker process ended at once, as when memory runs out; try fewer with -j") from error
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _quiet() -> None:
    """A worker leaves Ctrl-C to its parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _dask(tasks: Sequence[Task], workers: int, address: str) -> Iterator[tuple[int, list[Record]]]:
    try:
        from distributed import Client
        from distributed import as_completed as dask_completed
    except ImportError as error:
        raise EngineError("Dask is not installed: `pip install 'opusc[dask]'`") from error
    try:
        options = {"address": address} if address else {"n_workers": workers, "threads_per_worker": 1}
        client: Any = Client(**options)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise EngineError(f"no Dask scheduler at `{address}`: {error}") from error
    with client:
        futures = {client.submit(measure, task, pure=False): number for number, task in enumerate(tasks)}
        for future in dask_completed(list(futures)):  # type: ignore[no-untyped-call]
            yield futures[future], _result(future.result)


def _ray(tasks: Sequence[Task], workers: int, address: str) -> Iterator[tuple[int, list[Record]]]:
    try:
        import ray
    except ImportError as error:
        raise EngineError("Ray is not installed: `pip install 'opusc[ray]'`") from error
    try:
        ray.init(address=address or None, num_cpus=None if address else workers, log_to_driver=False)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise EngineError(f"no Ray cluster at `{address}`: {error}") from error
    try:
        remote = ray.remote(measure)
        waiting = {remote.remote(task): number for number, task in enumerate(tasks)}
        while waiting:
            done, _ = ray.wait(list(waiting), num_returns=1)
            for reference in done:
                yield waiting.pop(reference), _result(partial(ray.get, reference))
    finally:
        ray.shutdown()


def _result(get: Callable[[], Any]) -> list[Record]:
    try:
        return list(get())
    except Exception as error:  # an engine's own exception: a lost worker, a file that it cannot see
        raise EngineError(f"a worker failed: {type(error).__name__}: {error}") from error


ENGINES: dict[str, Engine] = {"processes": _processes, "dask": _dask, "ray": _ray}
