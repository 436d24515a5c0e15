#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The cases of `heddle-bench convolution` in PyTorch, in doubles and in floats, one JSON object a line.

    bench/peers/convolution.py [THREADS]
"""
import json
import os
import sys
import time

import torch

THREADS = int(sys.argv[1]) if len(sys.argv) > 1 else os.cpu_count()
ROUNDS = 8
torch.set_num_threads(THREADS)
torch.set_grad_enabled(False)

for images, channels, size, filters, window, stride, padding in ((64, 3, 224, 64, 7, 2, 3), (64, 64, 56, 64, 3, 1, 1)):
    for cells in (torch.float64, torch.float32):
        x = torch.rand(images, channels, size, size, dtype=cells)
        w = torch.rand(filters, channels, window, window, dtype=cells)
        forward = lambda: torch.nn.functional.conv2d(x, w, stride=stride, padding=padding)
        d = torch.rand_like(forward())
        forms = {
            "conv2d": forward,
            "conv2d_backward_data": lambda: torch.nn.grad.conv2d_input(x.shape, w, d, stride=stride, padding=padding),
            "conv2d_backward_filter": lambda: torch.nn.grad.conv2d_weight(x, w.shape, d, stride=stride, padding=padding),
        }
        for name, form in forms.items():
            form()
            best = float("inf")
            for _ in range(ROUNDS):
                begin = time.perf_counter()
                form()
                best = min(best, time.perf_counter() - begin)
            case = f"{name} {images}x{channels}x{size}x{size} by {filters}x{channels}x{window}x{window} stride {stride}"
            speed = 2 * d.numel() * channels * window * window / best / 1e9
            print(json.dumps({"bench": "convolution", "case": case, "cells": str(cells), "ms": round(best * 1e3, 3), "gflop_per_s": round(speed, 2), "threads": THREADS}), flush=True)
