"""In which order a pipeline stage works on its micro-batches.

A *block* is the forward or the backward pass of one micro-batch through one chunk of layers. A pipeline rank
has one chunk, or several (virtual stages) when the pipeline is interleaved.

Sources: GPipe (arXiv 1811.06965); 1F1B and interleaved 1F1B: Narayanan et al. 2021 (arXiv 2104.04473), with the
warm-up counts of Megatron-LM (megatron/core/pipeline_parallel/schedules.py).
"""

from dataclasses import dataclass

__all__ = ["Block", "gpipe", "interleaved", "one_f_one_b"]


@dataclass(frozen=True, slots=True)
class Block:
    """One pass of one micro-batch through one chunk of a stage."""

    forward: bool
    batch: int
    chunk: int = 0


def gpipe(batches: int) -> tuple[Block, ...]:
    """All forward passes, then all backward passes, in the order of the micro-batches; the same on every stage."""
    return tuple(Block(forward, batch) for forward in (True, False) for batch in range(batches))


def one_f_one_b(stage: int, stages: int, batches: int) -> tuple[Block, ...]:
    """stages - stage - 1 forward passes to warm up, then one forward and one backward in turn."""
    ahead = min(stages - stage - 1, batches)
    return _alternate([Block(True, b) for b in range(batches)], [Block(False, b) for b in range(batches)], ahead)


def interleaved(stage: int, stages: int, batches: int, chunks: int) -> tuple[Block, ...]:
    """1F1B over chunks: each group of `stages` micro-batches passes chunk after chunk.

    Needs batches to be a multiple of stages. The warm-up has 2 (stages - stage - 1) + (chunks - 1) stages forward
    passes, or all of them where there are fewer.
    """
    if batches % stages:
        raise ValueError("interleaving takes groups of as many micro-batches as there are stages")
    group, total = stages * chunks, batches * chunks
    forward, backward = [], []
    for k in range(total):
        batch, chunk = k // group * stages + k % stages, k % group // stages
        forward.append(Block(True, batch, chunk))
        backward.append(Block(False, batch, chunks - 1 - chunk))
    ahead = min(2 * (stages - stage - 1) + (chunks - 1) * stages, total)
    return _alternate(forward, backward, ahead)


def _alternate(forward: list[Block], backward: list[Block], ahead: int) -> tuple[Block, ...]:
    order = forward[:ahead]
    for f, b in zip(forward[ahead:], backward, strict=False):
        order += [f, b]
    return tuple(order + backward[len(forward) - ahead :])
