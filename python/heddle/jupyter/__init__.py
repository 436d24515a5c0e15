# SPDX-License-Identifier: Apache-2.0
"""The kernel for DML notebooks: `python -m heddle.jupyter install`, then choose "DML (Heddle)"."""
