"""LMerge: one logical stream out of physically different presentations of it (the LMerge paper).

    streams/    what a stream of elements is: elements, the temporal table they make, when an output may still follow its inputs,
                an input put in order, properties of a stream
    cases/      R0 to R4 as kernels, with their inputs, policies, outcomes and the state they keep
    merge.py    one protocol for all cases, and the merge of a case

Payloads are 64-bit codes: equal payloads have equal codes, and who owns a merge keeps the rows behind them.
"""
