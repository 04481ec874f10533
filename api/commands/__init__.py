"""The commands of `eddy`, one module each. Their imports run with the command, so that `--help` is fast."""
