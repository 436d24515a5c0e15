# SPDX-License-Identifier: Apache-2.0
"""Starts the kernel, as Jupyter does, or installs it: `python -m heddle.jupyter install [--sys-prefix]`."""

import os
import shutil
import sys
import tempfile


def install(words):
    from jupyter_client.kernelspec import KernelSpecManager
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(os.path.join(os.path.dirname(__file__), "kernel.json"), folder)
        where = {"prefix": sys.prefix} if "--sys-prefix" in words else {"user": True}
        print("installed", KernelSpecManager().install_kernel_spec(folder, "heddle", **where))


def main():
    try:
        import ipykernel.kernelapp
    except ImportError:
        sys.exit("heddle.jupyter needs ipykernel: pip install ipykernel")
    if sys.argv[1:2] == ["install"]:
        return install(sys.argv[2:])
    from heddle.jupyter.kernel import HeddleKernel
    ipykernel.kernelapp.IPKernelApp.launch_instance(kernel_class=HeddleKernel)


if __name__ == "__main__":
    main()
